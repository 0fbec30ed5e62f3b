package main

import (
	"bufio"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// A package or a type that outgrows these holds more than one thing.
const (
	maxPackageLines = 3500 // of code that is not a test
	maxMethods      = 45   // of one type
	maxDocFiles     = 1    // file names in a package comment: one may be pointed at, several are a tour
)

func TestPackagesAndTypesStaySmall(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	lines, methods := map[string]int{}, map[string]int{}
	for _, file := range goFiles(t, root) {
		pkg, full := path.Dir(file), filepath.Join(root, file)
		lines[pkg] += countLines(t, full)
		f, err := parser.ParseFile(token.NewFileSet(), full, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(f.Doc.Text(), ".go"); n > maxDocFiles {
			t.Errorf("%s: the package comment names %d files", file, n)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil {
				methods[pkg+"."+receiverType(fn.Recv.List[0].Type)]++
			}
		}
	}
	for pkg, n := range lines {
		if n > maxPackageLines {
			t.Errorf("package %s has %d lines, more than %d", pkg, n, maxPackageLines)
		}
	}
	for name, n := range methods {
		if n > maxMethods {
			t.Errorf("type %s has %d methods, more than %d", name, n, maxMethods)
		}
	}
}

// receiverType is the name of a method's type, without its pointer and type parameters.
func receiverType(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiverType(e.X)
	case *ast.IndexExpr:
		return receiverType(e.X)
	case *ast.IndexListExpr:
		return receiverType(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

func countLines(t *testing.T, file string) (n int) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }() // it is only read
	for s := bufio.NewScanner(f); s.Scan(); n++ {
	}
	return n
}
