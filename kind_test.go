package neli_test

import "bytes"

func containsKind(value []byte, kind string) bool {
	return bytes.Contains(value, []byte(`"kind":"`+kind+`"`))
}
