package feedback

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAdditionsOfAnEdit(t *testing.T) {
	for _, tc := range []struct {
		name, from, to string
		want           []string
	}{
		{"nothing", "a\nb", "a\nb\r\n", nil},
		{"a line", "a\nb", "a\nb\nc", []string{"c"}},
		{"two places", "a\nb\nc\nd", "x\na\nb\nc\nd\ny\nz", []string{"x", "y\nz"}},
		{"a changed line", "a\nb\nc", "a\nB\nc", []string{"B"}},
		{"only removed", "a\nb", "a", nil},
		{"from nothing", "", "a\nb", []string{"a\nb"}},
		{"Pawl's own block", "a", "a\n<!-- pawl:begin -->\nx\n<!-- pawl:end -->", nil},
	} {
		if diff := cmp.Diff(tc.want, Additions(tc.from, tc.to)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}
