package store

import "slices"

func Without(list []string, v string) []string {
	return slices.DeleteFunc(list, func(o string) bool { return o == v })
}
