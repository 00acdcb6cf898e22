package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pawlbot/pawl/policy"
)

// An unreadable row stops only its own account, repository or thread. The value's Damage says how an operator
// replaces the row.

// decode reads a stored JSON object.
func decode(state []byte, into any) error {
	if !bytes.HasPrefix(state, []byte("{")) {
		return errors.New("it is not a JSON object")
	}
	return json.Unmarshal(state, into)
}

func readBreaker(state []byte, into *policy.Breaker) {
	err := decode(state, into)
	if err == nil {
		err = into.Check()
	}
	if err != nil {
		*into = policy.Breaker{Damage: fmt.Sprintf("its row in the table breakers cannot be read (%v); "+
			"the operator should run pawl close-breaker, which replaces the row", err)}
	}
}

func readCooldown(state []byte, into *policy.Cooldown) {
	err := decode(state, into)
	if err == nil {
		err = into.Check()
	}
	if err != nil {
		*into = policy.Unreadable(fmt.Sprintf("its row in the table cooldowns cannot be read (%v); "+
			"/pawl resume on a thread of this repository replaces the row", err))
	}
}
