package localslack

type jsonObject map[string]any
