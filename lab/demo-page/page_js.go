package main

import (
	"os"
	"syscall/js"

	"github.com/goneli/neli"
	"github.com/goneli/neli/lab/demo-page/world"
)

// main gives the page a world: press(action, member), and state(), which returns JSON.
func main() {
	mode := neli.Exclusive
	if os.Args[1] == neli.NonExclusive.String() {
		mode = neli.NonExclusive
	}
	w, err := world.New(mode)
	must(err)
	js.Global().Set("world", map[string]any{
		"press": js.FuncOf(func(_ js.Value, args []js.Value) any {
			must(w.Press(args[0].String(), args[1].String()))
			return nil
		}),
		"state": js.FuncOf(func(js.Value, []js.Value) any {
			state, err := w.State()
			must(err)
			return string(state)
		}),
	})
	select {}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
