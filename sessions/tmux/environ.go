package tmux

import (
	"slices"
	"strings"

	"the-loop/sessions"
)

// allowedVariables are the variables that the server is started with; every pane inherits them, so no token is ever among them.
var allowedVariables = []string{"HOME", "USER", "LOGNAME", "SHELL", "PATH", "LANG", "TZ", "SSH_AUTH_SOCK"}

var proxyVariables = []string{"http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy"}

func isAllowedVariable(name string) bool {
	return slices.Contains(allowedVariables, name) || strings.HasPrefix(name, "LC_") || strings.HasPrefix(name, "XDG_") ||
		slices.Contains(proxyVariables, strings.ToLower(name)) && (strings.ToLower(name) == name || strings.ToUpper(name) == name)
}

// cleanEnviron is what of the base environment a tmux server may have, with a UTF-8 locale in any case.
func cleanEnviron(base []string) []string {
	values := map[string]string{}
	for _, entry := range base {
		if name, value, ok := strings.Cut(entry, "="); ok && isAllowedVariable(name) {
			values[name] = value
		}
	}
	if !isUTF8Locale(values) {
		delete(values, "LC_ALL")
		values["LC_CTYPE"] = "C.UTF-8"
		if values["LANG"] == "" {
			values["LANG"] = "C.UTF-8"
		}
	}
	if values["PATH"] == "" {
		values["PATH"] = "/usr/local/bin:/usr/bin:/bin"
	}
	clean := make([]string, 0, len(values))
	for name, value := range values {
		clean = append(clean, name+"="+value)
	}
	slices.Sort(clean)
	return clean
}

// isUTF8Locale reports whether the variable that counts for characters names UTF-8.
func isUTF8Locale(values map[string]string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if value := values[name]; value != "" {
			value = strings.ToUpper(value)
			return strings.Contains(value, "UTF-8") || strings.Contains(value, "UTF8")
		}
	}
	return false
}

// lookupEnv is the last value of a name in an environment, as programs read it.
func lookupEnv(environ []string, name string) string {
	for _, entry := range slices.Backward(environ) {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

// IsReserved reports a name that tmux sets in every pane whatever it is given (3.3a: environ_for_session).
func IsReserved(name string) bool {
	return slices.Contains([]string{"TERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "PWD", "TMUX", "TMUX_PANE"}, name)
}

// findProgram is the path of a program as its pane would find it: on path, or below dir for a name with a slash.
func findProgram(name, path, dir string) (string, error) {
	program, found := sessions.FindProgram(name, path, dir)
	switch {
	case found:
		return program, nil
	case program != "": // it is known where it should be
		return "", &BinaryNotFoundError{Name: program}
	}
	return "", &BinaryNotFoundError{Name: name, Path: path}
}
