// Command cut makes a release in this checkout: it writes the version, commits and tags, and prints what to push. It
// pushes nothing itself.
//
//	go run ./cut v0.2.0
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/goneli/neli/lab/release/internal/repo"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: cut vX.Y.Z")
		os.Exit(2)
	}
	if err := cut(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "cut:", err)
		os.Exit(1)
	}
}

func cut(version string) error {
	r, err := repo.Here()
	if err != nil {
		return err
	}
	if err := r.Cut(version); err != nil {
		return err
	}
	modules, err := r.Tagged(version)
	if err != nil {
		return err
	}
	_, err = fmt.Print(whatToPush(version, modules))
	return err
}

// whatToPush says how to publish a version. GitHub starts no workflow for tags if more than three are pushed at once,
// so the tag that .github/workflows/release.yml waits for is pushed last and alone.
func whatToPush(version string, modules []repo.Module) string {
	var others []string
	for _, m := range modules {
		if tag := m.Tag(version); tag != version {
			others = append(others, tag)
		}
	}
	return fmt.Sprintf(`%s is committed and tagged. To publish it:

	git push --atomic origin HEAD:main %s
	git push origin %[1]s

The second push starts the workflow that builds the archives. To undo it:

	git tag --delete %[1]s %[2]s && git reset --hard HEAD~1
`, version, strings.Join(others, " "))
}
