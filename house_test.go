package neli_test

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const electorDir = "internal/elector"

// TestSizesStayWithinBounds limits how much a stranger has to read. Whoever raises a bound says why in its reason.
func TestSizesStayWithinBounds(t *testing.T) {
	source, documents := tree(t, ".go"), tree(t, ".md")
	recipes := read(t, "Makefile")
	methods, writes := electorWalls(t)
	rooms := roomLines(source)
	largest := 0
	for dir, lines := range rooms {
		if dir != electorDir {
			largest = max(largest, lines)
		}
	}
	for _, c := range []struct {
		what        string
		count, most int
		reason      string
	}{
		{"lines of Go that are no tests", lines(source, false), 87800, "a small team carries them on; preparation, shards, gRPC, history, weights and fail-over took 6,500, chaos of disks, clocks and far members 300"},
		{"lines of tests", lines(source, true), 90200, "a new test machine replaces an old one; traces replaced the models, weights took 500"},
		{"words of Markdown", words(documents, ""), 57000, "a fact stands in one place"},
		{"words of the changelog", words(documents, "CHANGELOG.md"), 800, "it says what a user must know, git the rest"},
		{"go.mod files", len(tree(t, ".mod")), 12, "each has versions to keep in step"},
		{"targets of make", len(targetLine.FindAllString(recipes, -1)), 45, "people choose among them"},
		{"machines in docs/testing.md", strings.Count(section(documents["docs/testing.md"], "| machine, and"), "\n|"), 30, "each has a question of its own"},
		{"lines in internal/elector itself", rooms[electorDir], 3200, "what is pure stands in its rooms"},
		{"lines in a room of the elector", largest, 800, "a room is read in one sitting"},
		{"methods of the Node", methods["Node"], 45, "they alone have all state in reach"},
		{"fields of a Neli's settings", fields(source["settings.go"], "settings"), 30, "what changes stands apart"},
		{"writes of other types' fields in the elector", writes, 30, "a type that others write to keeps no promise"},
	} {
		assert.LessOrEqual(t, c.count, c.most, "%s: %s", c.what, c.reason)
		t.Logf("%s: %d (%d)", c.what, c.count, c.most)
	}
}

var targetLine = regexp.MustCompile(`(?m)^[a-z][a-z-]*:(?: |$)`)

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}

func lines(source map[string]string, tests bool) (n int) {
	for file, text := range source {
		if strings.HasSuffix(file, "_test.go") == tests {
			n += strings.Count(text, "\n")
		}
	}
	return n
}

// fields counts the fields of a struct.
func fields(text, of string) int {
	_, text, _ = strings.Cut(text, "\ntype "+of+" struct {\n")
	text, _, _ = strings.Cut(text, "\n}")
	return len(regexp.MustCompile(`(?m)^\t[A-Za-z]`).FindAllString(text, -1))
}

// words counts the words of one document, or of all.
func words(documents map[string]string, only string) (n int) {
	for file, text := range documents {
		if only == "" || file == only {
			n += len(strings.Fields(text))
		}
	}
	return n
}

// section returns the rows of the table that begins with a header.
func section(text, header string) string {
	_, rows, _ := strings.Cut(text, header)
	rows, _, _ = strings.Cut(rows, "\n\n")
	_, rows, _ = strings.Cut(rows, "\n|") // the line below the header
	return rows
}

// roomLines counts lines of the elector by directory.
func roomLines(source map[string]string) map[string]int {
	n := map[string]int{}
	for file, text := range source {
		if strings.HasPrefix(file, electorDir+"/") && !strings.HasSuffix(file, "_test.go") {
			n[filepath.ToSlash(filepath.Dir(file))] += strings.Count(text, "\n")
		}
	}
	return n
}

// electorWalls counts the methods of each type in the elector's own package, and the statements there that change a
// field of a struct of this package from outside this struct's methods.
func electorWalls(t *testing.T) (methods map[string]int, writes int) {
	t.Helper()
	fset, methods := token.NewFileSet(), map[string]int{}
	var files []*ast.File
	names, err := filepath.Glob(electorDir + "/*.go")
	require.NoError(t, err)
	for _, name := range names {
		if !strings.HasSuffix(name, "_test.go") {
			file, err := parser.ParseFile(fset, name, nil, 0)
			require.NoError(t, err)
			files = append(files, file)
		}
	}
	info := &types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}}
	config := types.Config{Importer: importer.ForCompiler(fset, "source", nil)}
	pkg, err := config.Check("elector", fset, files, info)
	require.NoError(t, err)
	owner := owners(pkg)
	for _, file := range files {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			self := receiver(f)
			methods[self]++
			for _, to := range assigned(f) {
				selection := info.Selections[to]
				if selection == nil {
					continue
				}
				if field, ok := selection.Obj().(*types.Var); ok && owner[field] != "" && owner[field] != self {
					writes++
				}
			}
		}
	}
	return methods, writes
}

// owners returns the struct type to which each field of a package belongs.
func owners(pkg *types.Package) map[*types.Var]string {
	owner := map[*types.Var]string{}
	for _, name := range pkg.Scope().Names() {
		if s, ok := pkg.Scope().Lookup(name).Type().Underlying().(*types.Struct); ok {
			for field := range s.Fields() {
				owner[field] = name
			}
		}
	}
	return owner
}

// receiver returns the type to which a method belongs, "" for a function.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	of := f.Recv.List[0].Type
	if pointer, ok := of.(*ast.StarExpr); ok {
		of = pointer.X
	}
	if generic, ok := of.(*ast.IndexExpr); ok {
		of = generic.X
	}
	return of.(*ast.Ident).Name
}

// assigned returns the fields that a function sets, x.f in x.f = 1 and also in x.f[i] = 1.
func assigned(f *ast.FuncDecl) (to []*ast.SelectorExpr) {
	add := func(e ast.Expr) {
		for {
			index, ok := e.(*ast.IndexExpr)
			if !ok {
				break
			}
			e = index.X
		}
		if s, ok := e.(*ast.SelectorExpr); ok {
			to = append(to, s)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, e := range n.Lhs {
				add(e)
			}
		case *ast.IncDecStmt:
			add(n.X)
		}
		return true
	})
	return to
}
