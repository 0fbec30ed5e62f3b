package config

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

//go:embed starter.yaml
var starterYAML []byte

// SchemaName is the file beside a configuration from which editors complete it.
const SchemaName = "cli-config.schema.json"

// ErrExists is that the file exists already where Init would write one.
var ErrExists = errors.New("the file exists already")

// InitOptions is what [Init] needs beside the path.
type InitOptions struct {
	Home string // whose list of accepted configurations gets the new one; required
}

// Starter is the configuration that [Init] writes: commented, and valid as it is.
func Starter() []byte { return bytes.Clone(starterYAML) }

// Init writes a first configuration (0600, in a folder of 0700 if it has to make one) with its schema beside it, and
// accepts it. It never overwrites a configuration ([ErrExists]) and writes none where others could change it
// ([ErrUnsafeFile]); the schema, which is generated, is brought up to date.
func Init(path string, o InitOptions) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("finding the folder of %s: %w", path, err)
	}
	dir := filepath.Dir(path)
	if err := prepareFolder(path, dir, o); err != nil {
		return err
	}
	if err := renameio.WriteFile(filepath.Join(dir, SchemaName), schemaJSON, 0o600); err != nil {
		return fmt.Errorf("writing the schema: %w", err)
	}
	if err := writeNewFile(path, starterYAML); err != nil {
		return err
	}
	return Trust(o.Home, path)
}

// prepareFolder refuses before anything is written, and makes the folder.
func prepareFolder(path, dir string, o InitOptions) error {
	if o.Home == "" {
		return errors.New("there is no home folder for the list of trusted configurations — set HOME")
	}
	if there, err := exists(path); err != nil {
		return err
	} else if there {
		return fmt.Errorf("%w: %s — edit it, or name another path", ErrExists, path)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the folder of the configuration: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("check the folder of the configuration: %w", err)
	}
	if fault := ownershipFault(info, false); fault != "" {
		return fmt.Errorf("%w: %s %s", ErrUnsafeFile, dir, fault)
	}
	return nil
}

// writeNewFile makes a file that must not exist yet, whole or not at all.
func writeNewFile(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%w: %s — edit it, or name another path", ErrExists, path)
	case err != nil:
		return fmt.Errorf("writing the configuration: %w", err)
	}
	_, err = f.Write(data)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(fmt.Errorf("writing the configuration: %w", err), os.Remove(path))
	}
	return nil
}
