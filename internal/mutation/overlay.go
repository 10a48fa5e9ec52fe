package mutation

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
)

// active is the variable that tells a mutated package its mutant. activeEnv is the environment variable that sets it.
const (
	active    = "mutationActive"
	activeEnv = "NELI_MUTANT"
)

// A body is a function's body that one or more mutants change.
type body struct {
	open, end int // the offsets of its braces
	mutants   []*mutant
}

// overlay returns the files to replace, with their new contents, so that the packages contain all
// of these mutants behind a switch. It also returns the mutants that cannot be switched: each
// needs a build of its own.
func overlay(mutants []*mutant) (files map[string]string, solo []*mutant) {
	files = map[string]string{}
	byFile := map[string][]*mutant{}
	for _, m := range mutants {
		byFile[m.path] = append(byFile[m.path], m)
	}
	for path, of := range byFile {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, of[0].source, parser.SkipObjectResolution)
		if err != nil {
			solo = append(solo, of...) // leave it to the compiler, whose message is better
			continue
		}
		var bodies []*body
		for _, m := range of {
			if !place(fset, file, m, &bodies) {
				solo = append(solo, m)
			}
		}
		if len(bodies) == 0 {
			continue
		}
		files[path] = splice(path, of[0].source, bodies)
		files[filepath.Join(filepath.Dir(path), "zz_mutation_active.go")] = activeSource(file.Name.Name)
	}
	slices.SortFunc(solo, func(a, b *mutant) int { return a.id - b.id })
	return files, solo
}

func activeSource(pkg string) string {
	return fmt.Sprintf("package %s\n\nimport (\n\t\"os\"\n\t\"strconv\"\n)\n\n"+
		"var %s, _ = strconv.Atoi(os.Getenv(%q))\n", pkg, active, activeEnv)
}

// place adds a mutant to the body that it changes. It reports whether the mutant can be switched there.
func place(fset *token.FileSet, file *ast.File, m *mutant, bodies *[]*body) bool {
	tf := fset.File(file.Pos())
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		open, end := tf.Offset(f.Body.Lbrace), tf.Offset(f.Body.Rbrace)
		if m.at <= open || m.at+len(m.Old) > end {
			continue
		}
		if labelled(f.Body) || !sameShape(file, m) {
			return false
		}
		i := slices.IndexFunc(*bodies, func(b *body) bool { return b.open == open })
		if i < 0 {
			i = len(*bodies)
			*bodies = append(*bodies, &body{open: open, end: end})
		}
		(*bodies)[i].mutants = append((*bodies)[i].mutants, m)
		return true
	}
	return false
}

// sameShape reports whether the mutated file still parses into the same number of declarations.
// Otherwise a New with an extra brace would end the switch.
func sameShape(file *ast.File, m *mutant) bool {
	mutated, err := parser.ParseFile(token.NewFileSet(), "", m.mutated(), parser.SkipObjectResolution)
	return err == nil && len(mutated.Decls) == len(file.Decls)
}

// labelled reports whether a body has labels, which may not occur twice in a function.
func labelled(b *ast.BlockStmt) bool {
	found := false
	ast.Inspect(b, func(n ast.Node) bool {
		_, is := n.(*ast.LabeledStmt)
		found = found || is
		return !found
	})
	return found
}

// splice replaces each body with a switch over its mutants. Line directives keep the original
// line numbers in compiler messages and stack traces, and put the mutant's number in the path of
// its copy.
func splice(path, source string, bodies []*body) string {
	slices.SortFunc(bodies, func(a, b *body) int { return a.open - b.open })
	var out strings.Builder
	base, done := filepath.Base(path), 0
	for _, b := range bodies {
		line := 1 + strings.Count(source[:b.open+1], "\n")
		out.WriteString(source[done : b.open+1])
		fmt.Fprintf(&out, "switch %s {\n", active)
		for _, m := range b.mutants {
			changed := source[b.open+1:m.at] + m.New + source[m.at+len(m.Old):b.end]
			fmt.Fprintf(&out, "case %d:\n/*line mutant%d/%s:%d:1*/%s\n", m.id, m.id, base, line, changed)
		}
		fmt.Fprintf(&out, "default:\n/*line %s:%d:1*/%s\n}\n", base, line, source[b.open+1:b.end])
		fmt.Fprintf(&out, "/*line %s:%d:1*/", base, 1+strings.Count(source[:b.end], "\n"))
		done = b.end
	}
	out.WriteString(source[done:])
	return out.String()
}
