package simhash

import (
	"slices"
	"strings"
	"testing"
)

// one and again are the same failure, with different words, values, folders and line numbers. other is a different failure.
var traces = map[string]struct{ one, again, other string }{
	"Python": {
		"Traceback (most recent call last):\n  File \"/srv/app/main.py\", line 12, in <module>\n    run(7)\n  File \"/srv/app/cart.py\", line 40, in total\n    return a + b\nTypeError: unsupported operand",
		"boom: 17 things\nTraceback (most recent call last):\n  File \"/tmp/x/main.py\", line 99, in <module>\n    go(count=3)\n  File \"/tmp/x/cart.py\", line 4, in total\n    return first + second\nValueError: no such thing at all",
		"Traceback (most recent call last):\n  File \"/srv/app/main.py\", line 12, in <module>\n    run(7)\n  File \"/srv/app/cart.py\", line 41, in discount\n    return a + b\nTypeError: unsupported operand",
	},
	"JavaScript": {
		"TypeError: Cannot read properties of undefined (reading 'id')\n    at total (/home/a/shop/src/cart.js:12:7)\n    at async Object.<anonymous> (/home/a/shop/test/cart.test.js:4:3)\n    at file:///home/a/shop/run.mjs:1:9",
		"TypeError: x is not iterable\n    at total (/w/b/src/cart.js:90:1)\n    at async Object.<anonymous> (/w/b/test/cart.test.js:8:30)\n    at file:///w/b/run.mjs:7:2",
		"TypeError: Cannot read properties of undefined (reading 'id')\n    at discount (/home/a/shop/src/cart.js:12:7)\n    at async Object.<anonymous> (/home/a/shop/test/cart.test.js:4:3)\n    at file:///home/a/shop/run.mjs:1:9",
	},
	"Java": {
		"Exception in thread \"main\" java.lang.IllegalStateException: 4\n\tat com.acme.Cart.total(Cart.java:31)\n\tat com.acme.Main.main(Main.java:9)",
		"java.lang.NullPointerException\n\tat com.acme.Cart.total(Cart.java:35)\n\tat com.acme.Main.main(Main.java:10)",
		"java.lang.NullPointerException\n\tat com.acme.Cart.total(Cart.java:35)\n\tat com.acme.Tool.main(Tool.java:10)",
	},
	"Go": {
		"panic: index out of range [3]\n\ngoroutine 1 [running]:\nmain.(*Cart).total(0xc00001, {0x1, 0x2})\n\t/home/a/cart.go:12 +0x1d\nmain.main()\n\t/home/a/main.go:7 +0x25\nexit status 2",
		"panic: nil map\n\ngoroutine 7 [running]:\nmain.(*Cart).total(0xc0000a)\n\t/tmp/b/cart.go:44 +0x9f\nmain.main()\n\t/tmp/b/main.go:19 +0x3\nexit status 2",
		"panic: nil map\n\ngoroutine 7 [running]:\nmain.(*Cart).pay(0xc0000a)\n\t/tmp/b/cart.go:44 +0x9f\nmain.main()\n\t/tmp/b/main.go:19 +0x3\nexit status 2",
	},
	"Rust": {
		"thread 'main' panicked at src/cart.rs:4:5:\nindex out of bounds\nstack backtrace:\n   2: shop::cart::total\n             at ./src/cart.rs:4:5\n   3: shop::main\n             at ./src/main.rs:9:1",
		"thread 'x' panicked at src/cart.rs:14:9:\nempty\nstack backtrace:\n   5: shop::cart::total\n             at /w/src/cart.rs:14:9\n   6: shop::main\n             at /w/src/main.rs:2:1",
		"thread 'x' panicked at src/stock.rs:14:9:\nempty",
	},
}

func TestFramesIdentifyAFailure(t *testing.T) {
	for name, c := range traces {
		one, again, other := Frames(c.one), Frames(c.again), Frames(c.other)
		if len(one) < 2 || !slices.Equal(one, again) {
			t.Errorf("%s: %s and %s, want at least two equal frames", name, one, again)
		}
		if s := Shared(one, other); len(other) == 0 || s >= 0.85 {
			t.Errorf("%s: another failure shares %.2f of the frames %s", name, s, other)
		}
	}
	for _, text := range []string{"", "FAIL: the sum is 3 (want 4)", "look at (this) File \"a\", or at noon"} {
		if f := Frames(text); len(f) != 0 {
			t.Errorf("%q: %d frames, want none", text, len(f))
		}
	}
}

// Only a trace's frames that are nearest to the failure count.
func TestNearestFramesCount(t *testing.T) {
	trace := func(names ...string) string {
		var b strings.Builder
		b.WriteString("Traceback (most recent call last):\n")
		for _, n := range names {
			b.WriteString("  File \"/a/" + n + ".py\", line 3, in run\n    run()\n")
		}
		return b.String() + "ValueError: x\n\n"
	}
	long, short := Frames(trace("runner", "suite", "case", "a", "b", "c")), Frames(trace("other", "a", "b", "c"))
	if !slices.Equal(long, short) || len(long) != nearFrames {
		t.Errorf("%s and %s, want the last three of each", long, short)
	}
	if both := Frames(trace("a", "b", "c") + trace("d", "e", "f")); len(both) != 2*nearFrames {
		t.Errorf("%d frames of two traces, want %d", len(both), 2*nearFrames)
	}
	if many := Frames(strings.Repeat(trace("a"), 9) + strings.Repeat("x", 300_000) + trace("z")); len(many) != 2 {
		t.Errorf("%d frames at both ends of a long text, want 2", len(many))
	}
	var all strings.Builder
	for i := range 900 {
		all.WriteString(trace(strings.Repeat("n", i%200+1)))
	}
	if n := len(Frames(all.String())); n != maxFrames {
		t.Errorf("%d frames, want at most %d", n, maxFrames)
	}
}
