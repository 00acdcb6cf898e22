package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"

	"github.com/pawlbot/pawl/internal/commands"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/thread"
)

// button is a command on a thread's page. Cannot says why it has no effect now, or is empty; Shell is the equivalent
// shell command.
type button struct{ Name, Does, Cannot, Shell string }

// steerField is the form field for a message to the running agent. Cannot says why the user has no field, or is
// empty; Full means that the text goes to the next attempt.
type steerField struct {
	Cannot string
	Full   bool
	Most   int // longest message in bytes
}

func steerFieldOf(a thread.Attempt, cannot map[policy.Permission]string) *steerField {
	next := policy.Steering{Running: true, Before: a.Steers}.Decide()
	return &steerField{
		Cannot: cannot[policy.CommandNamed(commands.Steer).Permission],
		Full:   next == policy.SteerFull,
		Most:   commands.MaxText,
	}
}

// barred says for each permission why a user lacks it on a repository, or nothing.
func (p *pages) barred(ctx context.Context, by User, t thread.ID) map[policy.Permission]string {
	barred := func(enough func(string) bool, why string) string {
		switch may, err := p.may(ctx, by, t.Repo(), enough); {
		case err != nil:
			return "GitHub did not say whether you may"
		case !may:
			return why + " " + render.Line(t.Repo(), maxName)
		}
		return ""
	}
	return map[policy.Permission]string{
		policy.Write:    barred(feedback.Writes, "you may not write to"),
		policy.Maintain: barred(feedback.Maintains, "you do not maintain"),
	}
}

func (p *pages) buttonsOf(ctx context.Context, t thread.ID, s thread.State, cannot map[policy.Permission]string) (all []button, err error) {
	repo := render.Line(t.Repo(), maxName)
	paused, err := commands.PausedBy(ctx, p.Store, t.Owner, t.Name)
	if err != nil {
		return nil, err
	}
	for _, c := range onPages() {
		o := button{Name: c.Name, Does: c.Page, Cannot: cannot[c.Permission]}
		subject := render.Line(t.String(), maxName)
		if c.Effect == policy.Pauses {
			if c.Name != commands.Pausing(paused) {
				continue
			}
			o.Does += " " + repo
			subject = repo
		} else if o.Cannot == "" {
			o.Cannot = cannotOnThread(c, s, paused, repo)
		}
		o.Shell = fmt.Sprintf("pawl %s --config FILE %s", c.Name, subject)
		all = append(all, o)
	}
	return all, nil
}

func onPages() []policy.CommandRow {
	return slices.DeleteFunc(slices.Clone(policy.Commands), func(c policy.CommandRow) bool { return c.Page == "" })
}

// cannotOnThread says why a command has no effect on a thread now, or returns empty. paused says who paused
// the repository, or is nil.
func cannotOnThread(c policy.CommandRow, s thread.State, paused *thread.Operated, repo string) string {
	if why := commands.Cannot(c.Name, s); why != "" {
		return why
	}
	if paused == nil || c.Effect != policy.BeginsWork {
		return ""
	}
	if paused.Damage != "" {
		return render.Line(paused.Pauses(repo), maxReason)
	}
	return render.Line(paused.By, maxName) + " paused " + repo
}

// addButtons registers the buttons. A button that has no effect answers 409 with the reason.
func (p *pages) addButtons(to handlers) {
	post := func(address string, enough func(permission string) bool, do func(r *http.Request, by commands.Actor) error) {
		to["POST "+address] = p.act(enough, func(w http.ResponseWriter, r *http.Request, by User) {
			ctx, cancel := context.WithTimeout(r.Context(), pageTime)
			defer cancel()
			err := do(r.WithContext(ctx), commands.Actor{Login: by.Name(), ID: by.ID, Where: "on the pages", At: p.Now()})
			var why commands.CannotError
			switch {
			case errors.As(err, &why):
				p.message(w, r, http.StatusConflict, "Nothing was done", why.Error()+".")
			case err != nil:
				p.unavailable(w, r, err)
			case enough == nil:
				redirect(w, http.StatusSeeOther, p.Access.base.Path+"/accounts")
			default: // buttons of threads
				redirect(w, http.StatusSeeOther, p.Access.base.Path+path.Dir(r.URL.EscapedPath()))
			}
		})
	}
	onThread := func(name string, enough func(permission string) bool, do func(ctx context.Context, t thread.ID, by commands.Actor) error) {
		post("/threads/{owner}/{repo}/{n}/"+name, enough, func(r *http.Request, by commands.Actor) error {
			t, _ := threadOf(r) // act has parsed it
			return do(r.Context(), t, by)
		})
	}
	for _, c := range onPages() {
		onThread(c.Name, feedback.Enough(c), func(ctx context.Context, t thread.ID, by commands.Actor) error {
			if c.Effect == policy.Pauses {
				return commands.OnRepository(ctx, p.Store, c.Name, t.Owner, t.Name, by)
			}
			return commands.OnThread(ctx, p.Store, c.Name, t, by)
		})
	}
	post("/threads/{owner}/{repo}/{n}/"+commands.Steer, feedback.Enough(policy.CommandNamed(commands.Steer)), func(r *http.Request, by commands.Actor) error {
		if err := r.ParseForm(); err != nil {
			return commands.CannotError("the form cannot be read: " + err.Error())
		}
		t, _ := threadOf(r) // act has parsed it
		return commands.SteerThread(r.Context(), p.Store, t, r.PostForm.Get("text"), by)
	})
	post("/accounts/{account}/close", nil, func(r *http.Request, by commands.Actor) error {
		return commands.CloseBreaker(r.Context(), p.Store, r.PathValue("account"), by)
	})
	post("/deliveries/{guid}/retry", nil, func(r *http.Request, by commands.Actor) error {
		if r.PathValue("guid") == store.AllUnhandled {
			return commands.CannotError("there is no such delivery")
		}
		_, err := commands.RetryDelivery(r.Context(), p.Store, r.PathValue("guid"), by)
		return err
	})
}
