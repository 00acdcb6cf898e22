// Package words counts the words of requests.
package words

import (
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Handler answers with the number of words in the body.
func Handler(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	fmt.Fprintln(w, Count(string(body)))
}

// Count is the number of words in a text.
func Count(text string) int { return len(strings.Fields(text)) }
