package validate

import (
	"context"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
)

// Compose loads a compose file as docker compose does, with these variables: it
// must agree with the schema, and what it refers to must be there.
func Compose(ctx context.Context, folder string, text []byte, variables map[string]string) (*types.Project, error) {
	return loader.LoadWithContext(ctx, types.ConfigDetails{
		WorkingDir:  folder,
		ConfigFiles: []types.ConfigFile{{Filename: "compose.yml", Content: text}},
		Environment: variables,
	})
}
