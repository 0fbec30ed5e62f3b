package envstate

import (
	"strconv"
	"testing"
)

func TestOnlyWhatIsNeitherDeclaredNorHeldIsForgotten(t *testing.T) {
	t.Parallel()
	s := NewSecrets(map[string]string{"OWN": "our-own-token"})
	s.SetDeclared(map[string]string{"KEY": "always-declared"})
	s.SetHeld([]Secret{{"KEY", "always-held"}, {"KEY", "held-twice"}, {"KEY", "held-twice"}})
	for i := range maxFormerSecrets + 10 {
		s.SetDeclared(map[string]string{"KEY": "always-declared", "OTHER": "generation-" + strconv.Itoa(i) + "-"})
	}
	last := strconv.Itoa(maxFormerSecrets + 8)
	for text, want := range map[string]string{
		"our-own-token": "[OWN]", "always-declared": "[KEY]", "always-held": "[KEY]", "held-twice": "[KEY]",
		"generation-" + last + "-": "[OTHER]", "generation-0-": "generation-0-",
	} {
		if got := s.Scrub(text); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
	if n := len(s.former); n != maxFormerSecrets {
		t.Errorf("%d former values are remembered", n)
	}
}
