package envstate

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Changes counts how often the env file changed. It holds a sum of what the file declared last, in memory only.
type Changes struct {
	mu    sync.Mutex // guards the fields that follow
	sum   [sha256.Size]byte
	count int
}

// Observe returns how often the file has changed until now. While it cannot be read it has not.
func (c *Changes) Observe(values map[string]string, readable bool) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !readable {
		return c.count
	}
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		_, _ = fmt.Fprintf(h, "%s=%s\x00", name, values[name]) // a hash takes everything
	}
	if sum := [sha256.Size]byte(h.Sum(nil)); sum != c.sum {
		c.sum = sum
		c.count++
	}
	return c.count
}
