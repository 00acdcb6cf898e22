package policy

// Context is what kind of work an attempt was given. The zero value is work of
// which nothing is known.
type Context struct {
	Repo     string   `json:"repo"` // owner/repo
	Category Category `json:"category"`
	Size     Size     `json:"size"`
}

// Category is what a task is about.
type Category string

// The categories.
const (
	Bug        Category = "bug"
	Feature    Category = "feature"
	Docs       Category = "docs"
	Test       Category = "test"
	Refactor   Category = "refactor"
	Dependency Category = "dependency"
	Chore      Category = "chore"
	Other      Category = "other"
)

// Size is how large a task is.
type Size string

// The sizes.
const (
	Small  Size = "small"
	Medium Size = "medium"
	Large  Size = "large"
)
