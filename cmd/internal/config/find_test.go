package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func noEnv(string) string { return "" }

// workdirAndHome makes a working folder and a home, each of ours.
func workdirAndHome(t *testing.T) (workdir, home string) {
	t.Helper()
	dir := privateTempDir(t)
	workdir, home = filepath.Join(dir, "w"), filepath.Join(dir, "h")
	for _, d := range []string{workdir, home} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return workdir, home
}

func TestSearchOrder(t *testing.T) {
	t.Parallel()
	workdir, home := workdirAndHome(t)
	env := func(name string) string { return map[string]string{PathVariable: "~/env.yaml"}[name] }
	writeFile(t, HomePath(home), "version: 1\n")
	expect := func(explicit string, env func(string) string, want FoundFile) {
		t.Helper()
		got, err := Find(explicit, env, workdir, home)
		if err != nil || got != want {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
	}
	expect("", noEnv, FoundFile{HomePath(home), OriginHome})
	writeFile(t, FolderPath(workdir), "version: 1\n")
	if err := Trust(home, FolderPath(workdir)); err != nil {
		t.Fatal(err)
	}
	expect("", noEnv, FoundFile{FolderPath(workdir), OriginFolder})
	expect("", env, FoundFile{filepath.Join(home, "env.yaml"), OriginEnvironment})
	expect("x/../c.yaml", env, FoundFile{filepath.Join(workdir, "c.yaml"), OriginFlag})
}

func TestNothingFoundSaysWhereItLookedAndWhatToDo(t *testing.T) {
	t.Parallel()
	workdir, home := workdirAndHome(t)
	_, err := Find("", noEnv, workdir, home)
	if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), FolderPath(workdir)) || !strings.Contains(err.Error(), HomePath(home)) ||
		!strings.Contains(err.Error(), "the-loop config init") {
		t.Errorf("got %v", err)
	}
}

func TestAFolderConfigIsNotUsedBeforeItIsTrusted(t *testing.T) {
	t.Parallel()
	workdir, home := workdirAndHome(t)
	writeFile(t, HomePath(home), "version: 1\n") // must not be fallen back to
	path := FolderPath(workdir)
	writeFile(t, path, "version: 1\n")
	_, err := Find("", noEnv, workdir, home)
	if !errors.Is(err, ErrUntrusted) || !strings.Contains(err.Error(), "`the-loop config trust "+path+"`") {
		t.Fatalf("got %v", err)
	}
	if err := Trust(home, path); err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, "version: 1\nstate: {root: x}\n") // accepted is the path, not the contents
	if _, err := Find("", noEnv, workdir, home); err != nil {
		t.Errorf("accepted, and still: %v", err)
	}
}

func TestAFolderConfigMustBeWritableByItsOwnerOnly(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(t *testing.T, path string){
		"file writable by the group":   func(t *testing.T, path string) { chmod(t, path, 0o620) },
		"file writable by all":         func(t *testing.T, path string) { chmod(t, path, 0o602) },
		"folder writable by the group": func(t *testing.T, path string) { chmod(t, filepath.Dir(path), 0o770) },
		"file of another user":         func(t *testing.T, path string) { chownToNobody(t, path) },
		"folder of another user":       func(t *testing.T, path string) { chownToNobody(t, filepath.Dir(path)) },
		"file is a link":               func(t *testing.T, path string) { replaceWithLink(t, path) },
		"folder is a link":             func(t *testing.T, path string) { replaceWithLink(t, filepath.Dir(path)) },
		"dangling link": func(t *testing.T, path string) {
			replaceWithLink(t, path)
			if err := os.Remove(path + ".real"); err != nil {
				t.Fatal(err)
			}
		},
		"file is a folder": func(t *testing.T, path string) {
			if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			workdir, home := workdirAndHome(t)
			writeFile(t, HomePath(home), "version: 1\n") // must not be fallen back to
			path := FolderPath(workdir)
			writeFile(t, path, "version: 1\n")
			if err := Trust(home, path); err != nil {
				t.Fatal(err)
			}
			spoil(t, path)
			found, err := Find("", noEnv, workdir, home)
			if !errors.Is(err, ErrUnsafeFile) || !strings.Contains(err.Error(), filepath.Dir(path)) {
				t.Errorf("got %+v, %v", found, err)
			}
			if err := Trust(home, path); !errors.Is(err, ErrUnsafeFile) {
				t.Errorf("accepted: %v", err)
			}
		})
	}
}

func chownToNobody(t *testing.T, path string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	if err := os.Chown(path, 65534, 65534); err != nil {
		t.Fatal(err)
	}
}

func replaceWithLink(t *testing.T, path string) {
	t.Helper()
	if err := errors.Join(os.Rename(path, path+".real"), os.Symlink(path+".real", path)); err != nil {
		t.Fatal(err)
	}
}

func TestTrustAppliesToTheTargetOfALink(t *testing.T) {
	t.Parallel()
	workdir, home := workdirAndHome(t)
	good, bad, link := filepath.Join(workdir, "good"), filepath.Join(workdir, "bad"), filepath.Join(workdir, "link")
	writeFile(t, FolderPath(good), "version: 1\n")
	writeFile(t, FolderPath(bad), "version: 1\n")
	if err := errors.Join(os.Symlink(good, link), Trust(home, FolderPath(link))); err != nil {
		t.Fatal(err)
	}
	if found, err := Find("", noEnv, link, home); err != nil || found.Path != FolderPath(good) {
		t.Errorf("got %+v, %v", found, err)
	}
	if err := errors.Join(os.Remove(link), os.Symlink(bad, link)); err != nil {
		t.Fatal(err)
	}
	if _, err := Find("", noEnv, link, home); !errors.Is(err, ErrUntrusted) {
		t.Errorf("a moved link kept its acceptance: %v", err)
	}
}

func TestTheHomeFolderNeedsNoTrust(t *testing.T) {
	t.Parallel()
	_, home := workdirAndHome(t)
	writeFile(t, HomePath(home), "version: 1\n")
	if found, err := Find("", noEnv, home, home); err != nil || found.Origin != OriginHome {
		t.Errorf("got %+v, %v", found, err)
	}
}

func TestATrustListThatOthersCanWriteIsRefused(t *testing.T) {
	t.Parallel()
	workdir, home := workdirAndHome(t)
	path := FolderPath(workdir)
	writeFile(t, path, "version: 1\n")
	writeFile(t, trustPath(home), path+"\n")
	if ok, err := IsTrusted(home, path); !ok || err != nil {
		t.Fatalf("got %v, %v", ok, err)
	}
	chmod(t, trustPath(home), 0o666)
	if ok, err := IsTrusted(home, path); ok || !errors.Is(err, ErrUnsafeFile) {
		t.Errorf("got %v, %v", ok, err)
	}
}

func TestConcurrentTrustLosesNothing(t *testing.T) {
	t.Parallel()
	workdir, home := workdirAndHome(t)
	writeFile(t, trustPath(home), "/edited/by/hand") // without its line feed
	var all sync.WaitGroup
	paths := make([]string, 20)
	for i := range paths {
		paths[i] = FolderPath(filepath.Join(workdir, fmt.Sprint(i)))
		writeFile(t, paths[i], "version: 1\n")
	}
	if err := Trust(home, paths[0]); err != nil {
		t.Fatal(err)
	}
	for _, p := range paths {
		all.Go(func() {
			if err := Trust(home, p); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, p := range paths {
		if ok, err := IsTrusted(home, p); !ok || err != nil {
			t.Errorf("%s: %v, %v", p, ok, err)
		}
	}
	list, err := os.ReadFile(trustPath(home))
	if err != nil || !strings.HasPrefix(string(list), "/edited/by/hand\n") || strings.Count(string(list), "\n") != 21 {
		t.Errorf("list, %v:\n%s", err, list)
	}
	if info, err := os.Stat(trustPath(home)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the list: %v, %v", info, err)
	}
}
