package store

import "slices"

// Without is a list without a value. It reuses the list.
func Without(list []string, v string) []string {
	return slices.DeleteFunc(list, func(o string) bool { return o == v })
}
