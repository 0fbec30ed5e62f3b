package store

type Object map[string]any
