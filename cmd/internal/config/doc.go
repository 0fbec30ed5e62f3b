// Package config reads the-loop's YAML file: it finds the file, asks whether it may be trusted, validates it against an
// embedded JSON Schema, resolves its defaults and paths, and follows its changes.
//
// The way of a file: [Find] decides which one, a [Loader] turns it into a [Config] or into an [*Error] that names file,
// line and key, and a [Watcher] does so again after each change. A configuration is taken whole or not at all. [Init]
// writes the first one; [Trust] accepts one that somebody else wrote. Values of the environment, tokens above all, are
// never part of a configuration and never part of an error; [ReadTokens] reads them.
package config
