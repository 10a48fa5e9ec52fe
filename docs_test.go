package neli_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// readmeWords is the greatest length of a README that can be read in five minutes.
const readmeWords = 1200

func TestReadmeIsShort(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	require.LessOrEqual(t, len(strings.Fields(string(text))), readmeWords)
}

// TestReadmeExampleCompiles type-checks the first program of the README as users would paste it.
func TestReadmeExampleCompiles(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(text), "```go\npackage main\n")
	require.True(t, found, "README.md has no program")
	program, _, closed := strings.Cut(rest, "```")
	require.True(t, closed)
	file := filepath.Join(t.TempDir(), "main.go")
	require.NoError(t, os.WriteFile(file, []byte("package main\n"+program), 0o600))
	out, err := exec.CommandContext(t.Context(), "go", "vet", file).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// called matches a call in the README: of a method of a Neli n or of a Leadership l, or of a function of the package.
var called = regexp.MustCompile(`\b(n|l|neli)\.([A-Z][A-Za-z]*)\(`)

// Every function that the README names has an example, where users see how to call it.
func TestReadmesFunctionsHaveExamples(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	files, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	var examples strings.Builder
	for _, file := range files {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		examples.Write(source)
	}
	named := called.FindAllStringSubmatch(string(text), -1)
	require.Greater(t, len(named), 10)
	for _, m := range named {
		of, function := m[1], m[2]
		name := map[string]string{"n": "ExampleNeli_", "l": "ExampleLeadership_", "neli": "Example"}[of] + function
		assert.Contains(t, examples.String(), "func "+name+"() {")
	}
}

var (
	fence = regexp.MustCompile("(?ms)^```.*?^```$")
	code  = regexp.MustCompile("`[^`\n]*`")
	// Links of Markdown, with a title or without, of definitions, and of HTML.
	link = regexp.MustCompile(`\]\(<?([^()<>\s]+)>?(?:\s+"[^"]*")?\)|(?m:^\s*\[[^\]]+\]:\s+<?([^<>\s]+)>?)|<[^<>]*\s(?:href|src|srcset)="([^"]*)"`)
	// here matches absolute links that lead into this repository.
	here = regexp.MustCompile(`^https://github\.com/goneli/neli/(?:blob|tree)/main/`)
	// named matches a document as comments, rules and recipes name it.
	named   = regexp.MustCompile(`(?:^|[\s("\x60]|blob/main/)((?:docs|lab/bench/results)/[a-z-]+\.md)(#[a-z0-9-]+)?`)
	heading = regexp.MustCompile(`(?m)^#+ +(.+)$`)
)

// TestDocumentsLinkToWhatExists follows each link of each document that stays in this
// repository to a file and, within documents, to a heading.
func TestDocumentsLinkToWhatExists(t *testing.T) {
	documents := markdown(t)
	require.Contains(t, documents, "README.md")
	followed := 0
	for file, text := range documents {
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(text, ""), -1) {
			to := m[1] + m[2] + m[3]
			path, anchor, _ := strings.Cut(here.ReplaceAllString(to, ""), "#")
			switch {
			case strings.Contains(path, ":"):
				continue // another site's
			case path == "":
				path = file
			case !here.MatchString(to):
				path = filepath.ToSlash(filepath.Join(filepath.Dir(file), path))
			}
			_, err := os.Stat(path)
			assert.NoErrorf(t, err, "%s links to %s", file, to)
			if anchor != "" {
				assert.Containsf(t, anchors(documents[path]), anchor, "%s links to %s", file, to)
			}
			followed++
		}
	}
	require.Greater(t, followed, 200, "of those that there are")
}

// TestSourcesNameDocumentsThatExist does the same for documents that comments, alerts and recipes name.
func TestSourcesNameDocumentsThatExist(t *testing.T) {
	documents, sources := markdown(t), tree(t, ".go", ".yaml", ".tmpl")
	recipes, err := os.ReadFile("Makefile")
	require.NoError(t, err)
	sources["Makefile"] = string(recipes)
	for file, text := range sources {
		if !strings.Contains(text, ".md") { // much faster than the expression
			continue
		}
		for _, m := range named.FindAllStringSubmatch(text, -1) {
			if _, there := documents[m[1]]; assert.True(t, there, "%s names %s, which is missing", file, m[1]) && m[2] != "" {
				assert.Contains(t, anchors(documents[m[1]]), m[2][1:], "%s names %s", file, m[0])
			}
		}
	}
}

// warning matches a call that logs a warning or an error, trouble a report of neli run's guard that is logged as one.
var (
	warning = regexp.MustCompile(`(?:(?:(?:[lL]og|[lL]ogger)\.(?:Warn|Error)|\blog)\(|inside\.Warn\(r\.n, )"([^"]+)"|slog\.Level(?:Warn|Error), "([^"]+)"`)
	trouble = regexp.MustCompile(`\btell\((?:fmt\.Sprintf\()?"([^"]+)"`)
	verb    = regexp.MustCompile(`%[a-z]`)
)

var (
	namedTest   = regexp.MustCompile(`\bTest[A-Z]\w+`)
	namedTarget = regexp.MustCompile("`make ([a-z-]+[a-z])\\b")
)

// TestDocumentsNameTestsAndTargetsThatExist looks up each test, or the beginning of its name, and each
// target of make.
func TestDocumentsNameTestsAndTargetsThatExist(t *testing.T) {
	var tests strings.Builder
	for file, source := range tree(t, ".go") {
		if strings.HasSuffix(file, "_test.go") {
			tests.WriteString(source)
		}
	}
	recipes, err := os.ReadFile("Makefile")
	require.NoError(t, err)
	looked := 0
	for file, text := range markdown(t) {
		for _, name := range namedTest.FindAllString(text, -1) {
			looked++
			assert.True(t, strings.Contains(tests.String(), "func "+name), "%s names %s", file, name)
		}
		for _, m := range namedTarget.FindAllStringSubmatch(text, -1) {
			looked++
			assert.Regexp(t, `(?m)^[a-z -]*\b`+m[1]+`(?: [a-z -]+)?:`, string(recipes), "%s names make %s", file, m[1])
		}
	}
	require.Greater(t, looked, 60, "of those that there are")
}

// inRow is how many words in a row may not stand twice.
const inRow = 12

var (
	target    = regexp.MustCompile(`\]\([^)\s]*\)`)
	tableHead = regexp.MustCompile(`(?m)^\|.*\n\|[-:| ]+\|$`)
	between   = regexp.MustCompile(`[^\pL\pN]*\s[^\pL\pN]*`) // words
)

// TestNothingStandsTwice looks for runs of words that stand twice in the README, the pages and the results, outside
// blocks of code and heads of tables. Whatever stands in two places is soon changed in only one of them.
func TestNothingStandsTwice(t *testing.T) {
	documents, stands := markdown(t), map[string]string{}
	for _, file := range slices.Sorted(maps.Keys(documents)) {
		text := tableHead.ReplaceAllString(target.ReplaceAllString(documents[file], "]"), "")
		words := strings.Fields(between.ReplaceAllString(strings.ToLower(text), " "))
		for i := 0; i+inRow <= len(words); i++ {
			words := strings.Join(words[i:i+inRow], " ")
			if other, twice := stands[words]; twice {
				assert.Fail(t, words, "stands in %s and %s", other, file)
				i += inRow
			}
			stands[words] = file
		}
	}
	require.Greater(t, len(stands), 40_000, "of those that there are")
}

// Each page has a title and, below it, says for whom it is.
func TestPagesSayWhoTheyAreFor(t *testing.T) {
	for file, text := range markdown(t) {
		if filepath.Dir(file) == "docs" {
			assert.Regexp(t, `\A# [^\n]+\n\n(?:<!--[^\n]*-->\n\n)?For `, text, file)
		}
	}
}

// notInRunbook are programs for tests and examples, and peers and neli-outbox, whose pages have their own lists.
var notInRunbook = regexp.MustCompile(`^(cmd/neli-outbox|examples|lab|nelitest|peers|\w+/internal/compare)/`)

// TestRunbookNamesEveryWarning looks up in the runbook every line that the library and neli run log
// as a warning or an error. People search for such lines there during an incident.
func TestRunbookNamesEveryWarning(t *testing.T) {
	text, err := os.ReadFile("docs/runbook.md")
	require.NoError(t, err)
	_, runbook, found := strings.Cut(string(text), "## Log lines")
	require.True(t, found)
	lines := 0
	for file, source := range tree(t, ".go") {
		if strings.HasSuffix(file, "_test.go") || notInRunbook.MatchString(file) {
			continue
		}
		for _, m := range warning.FindAllStringSubmatch(source, -1) {
			lines++
			assert.True(t, strings.Contains(runbook, m[1]+m[2]), "%s logs %q", file, m[1]+m[2])
		}
		for _, m := range trouble.FindAllStringSubmatch(source, -1) {
			lines++
			for _, part := range verb.Split(strings.TrimSuffix(m[1], ": "), -1) {
				assert.True(t, strings.Contains(runbook, strings.TrimSpace(part)), "%s logs %q", file, m[1])
			}
		}
	}
	require.Greater(t, lines, 15, "of those that there are")
}

// The runbook says that group and name are LeaderGroupID and Name in every line. If a line set one of them
// to another value, it would have the key twice.
func TestLogLinesLeaveGroupAndNameToTheLogger(t *testing.T) {
	own := regexp.MustCompile(`[lL]og(?:ger)?\.(?:Debug|Info|Warn|Error)\([^\n]*"(?:group|name)",[^\n]*`)
	for file, source := range tree(t, ".go") {
		if !strings.HasSuffix(file, "_test.go") && (!notInRunbook.MatchString(file) || strings.HasPrefix(file, "peers/")) {
			assert.Empty(t, own.FindAllString(source, -1), file)
		}
	}
}

// Every error that ends a Neli has a row in the runbook's table, with its cause and what to do.
func TestRunbookNamesEveryFatalError(t *testing.T) {
	source, err := os.ReadFile("errors.go")
	require.NoError(t, err)
	_, fatal, found := strings.Cut(string(source), "// Errors that end a Neli")
	require.True(t, found)
	fatal, _, found = strings.Cut(fatal, "\n)\n")
	require.True(t, found)
	runbook, err := os.ReadFile("docs/runbook.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(runbook), "## Starting anew after a fatal end")
	require.True(t, found)
	var want, got []string
	for _, m := range regexp.MustCompile(`(?m)^\t(Err\w+) += `).FindAllStringSubmatch(fatal, -1) {
		want = append(want, m[1])
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `(Err\\w+)` \\| [^|]{5,} \\| [^|]{5,} \\|$").FindAllStringSubmatch(table, -1) {
		got = append(got, m[1])
	}
	require.Greater(t, len(want), 4)
	require.ElementsMatch(t, want, got)
}

// markdown returns all documents of this repository by path, without their blocks of
// code, in which nothing is a link or a heading.
func markdown(t *testing.T) map[string]string {
	t.Helper()
	documents := tree(t, ".md")
	for path, text := range documents {
		documents[path] = fence.ReplaceAllString(text, "")
	}
	return documents
}

// tree returns the files of this repository with one of these extensions, by path.
func tree(t *testing.T, extensions ...string) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && strings.HasPrefix(d.Name(), "."), d.IsDir() && d.Name() == "node_modules":
			return fs.SkipDir
		case d.IsDir() || !slices.Contains(extensions, filepath.Ext(path)):
			return nil
		}
		text, err := os.ReadFile(path)
		files[filepath.ToSlash(path)] = string(text)
		return err
	}))
	return files
}

// anchors returns the names by which GitHub links to a document's headings: in lower case, with
// hyphens for blanks and without punctuation.
func anchors(text string) []string {
	var names []string
	seen := map[string]int{}
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		name := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, m[1])
		seen[name]++
		if n := seen[name] - 1; n > 0 { // another heading has the same text
			name += fmt.Sprintf("-%d", n)
		}
		names = append(names, name)
	}
	return names
}
