package sessions

import (
	"context"
	"errors"
	"slices"
)

// Defaults are what a definition gets where it says nothing, from routing in the configuration.
type Defaults struct {
	Harness     string
	HarnessArgs map[string][]string // by harness
	Cwd         string
}

// CreatedDefinition is the definition of a session that is created; what the request leaves out comes from the defaults.
func CreatedDefinition(q CreateRequest, d Defaults) Definition {
	def := Definition{Name: q.Name, Description: q.Description, Source: SourceCreated, Harness: q.Harness, HarnessArgs: slices.Clone(q.HarnessArgs),
		Cwd: q.Cwd, Prompt: q.Prompt, PromptFile: q.PromptFile, AutoStart: !q.NoAutoStart, Chat: q.Chat}
	if def.Harness == "" {
		def.Harness = d.Harness
	}
	if q.HarnessArgs == nil {
		def.HarnessArgs = slices.Clone(d.HarnessArgs[def.Harness])
	}
	if def.Cwd == "" {
		def.Cwd = d.Cwd
	}
	return def
}

// RegisteredDefinition is the definition of a work item's session.
func RegisteredDefinition(q RegisterRequest, d Defaults) Definition {
	def := CreatedDefinition(CreateRequest{Name: q.Ref.Name(), Harness: q.Harness, Cwd: q.Cwd, Chat: q.Chat}, d)
	def.Source, def.AutoStart, def.HarnessArgs = SourceRegistered, false, slices.Clone(def.HarnessArgs)
	return def
}

// IsCreated reports whether the record of that name, if there is one, is of a session that was created. A configuration
// that declares the name too is not valid.
func IsCreated(ctx context.Context, r Records, name string) (bool, error) {
	rec, err := r.Load(ctx, StandingRef(name))
	if errors.Is(err, ErrNotRecorded) {
		return false, nil
	}
	return err == nil && rec.Definition.Source == SourceCreated, err
}
