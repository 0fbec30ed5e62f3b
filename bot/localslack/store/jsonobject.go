package store

// Object is a JSON object.
type Object map[string]any
