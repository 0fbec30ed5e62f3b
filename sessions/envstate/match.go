package envstate

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// keySize is how many bytes of a pattern it is looked up by; none is shorter.
const keySize = 4

// filterBits is the size of a matcher's filter, as a power of two.
const filterBits = 18

// pattern is a text that is looked for, and the name of the value that it is a form of.
type pattern struct {
	text, name                  string
	leadingBytes, trailingBytes int // bytes before and after it that are taken with it
}

// matcher finds many patterns in one pass: a filter says for most places at once that none begins there.
type matcher struct {
	filter [1 << (filterBits - 6)]uint64
	byKey  map[uint32][]pattern // the longest first
}

func newMatcher(patterns []pattern) *matcher {
	m := &matcher{byKey: map[uint32][]pattern{}}
	for _, p := range patterns {
		if len(p.text) < keySize {
			continue
		}
		key := binary.LittleEndian.Uint32([]byte(p.text))
		m.byKey[key] = append(m.byKey[key], p)
		bit := filterBit(key)
		m.filter[bit/64] |= 1 << (bit % 64)
	}
	for key, same := range m.byKey {
		slices.SortFunc(same, func(a, b pattern) int {
			return cmp.Or(cmp.Compare(len(b.text), len(a.text)), cmp.Compare(a.text, b.text), cmp.Compare(a.name, b.name))
		})
		m.byKey[key] = slices.CompactFunc(same, func(a, b pattern) bool { return a.text == b.text })
	}
	return m
}

func filterBit(key uint32) uint32 { return key * 2654435761 >> (32 - filterBits) }

// each calls found for the longest pattern at each place of text where one begins.
func (m *matcher) each(text []byte, found func(start int, p pattern)) {
	for i := 0; i+keySize <= len(text); i++ {
		key := binary.LittleEndian.Uint32(text[i:])
		bit := filterBit(key)
		if m.filter[bit/64]&(1<<(bit%64)) == 0 {
			continue
		}
		for _, p := range m.byKey[key] {
			if len(text)-i >= len(p.text) && string(text[i:i+len(p.text)]) == p.text {
				found(i, p)
				break
			}
		}
	}
}
