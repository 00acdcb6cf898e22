package validate

import (
	"context"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
)

// Compose loads a compose file as docker compose does, with these variables. The file must match
// the schema, and everything it refers to must exist.
func Compose(ctx context.Context, folder string, text []byte, variables map[string]string) (*types.Project, error) {
	return loader.LoadWithContext(ctx, types.ConfigDetails{
		WorkingDir:  folder,
		ConfigFiles: []types.ConfigFile{{Filename: "compose.yml", Content: text}},
		Environment: variables,
	})
}
