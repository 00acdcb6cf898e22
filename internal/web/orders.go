package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"

	"github.com/pawlbot/pawl/internal/orders"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/thread"
)

// order is a button, by the name that it has in a comment and in the address that it is posted to. It says why it cannot
// act, and how the same is done in the shell.
type order struct{ Name, Does, Cannot, Shell string }

// ordersOf are the buttons of a thread's page.
func (p *pages) ordersOf(ctx context.Context, by Person, t thread.ID, s thread.State) (all []order, err error) {
	repo := render.Line(t.Repo(), maxName)
	barred := func(enough func(string) bool, why string) string {
		switch may, err := p.may(ctx, by, t.Repo(), enough); {
		case err != nil:
			return "GitHub does not say now whether you may"
		case !may:
			return why + " " + repo
		}
		return ""
	}
	cannot := barred(feedback.Writes, "you may not write to")
	paused, err := orders.PausedBy(ctx, p.Store, t.Owner, t.Name)
	if err != nil {
		return nil, err
	}
	for _, o := range []order{
		{Name: orders.Retry, Does: "Start one more attempt"}, {Name: orders.Stop, Does: "End the run"}, {Name: orders.Resume, Does: "Go on now; a bound of the day still holds"},
	} {
		o.Shell = fmt.Sprintf("pawl %s --config FILE %s", o.Name, render.Line(t.String(), maxName))
		if o.Cannot = cannot; cannot == "" {
			o.Cannot = orders.Cannot(o.Name, s)
		}
		if o.Cannot == "" && paused != nil && o.Name != orders.Stop {
			o.Cannot = render.Line(paused.By, maxName) + " paused " + repo
		}
		all = append(all, o)
	}
	pause := order{
		Name:   "pause",
		Does:   "Let nothing begin in " + repo,
		Cannot: barred(feedback.Maintains, "you do not maintain"),
	}
	if paused != nil {
		pause.Name, pause.Does = "unpause", "Let work begin again in "+repo
	}
	pause.Shell = "pawl " + pause.Name + " --config FILE " + repo
	return append(all, pause), nil
}

// addOrders adds what the buttons do. Where one cannot act any more, a page says why.
func (p *pages) addOrders(to handlers) {
	post := func(address string, enough func(permission string) bool, do func(r *http.Request, by orders.Person) error) {
		to["POST "+address] = p.act(enough, func(w http.ResponseWriter, r *http.Request, by Person) {
			ctx, cancel := context.WithTimeout(r.Context(), pageTime)
			defer cancel()
			err := do(r.WithContext(ctx), orders.Person{Login: by.Name(), ID: by.ID, Where: "on the pages", At: p.Now()})
			var why orders.CannotError
			switch {
			case errors.As(err, &why):
				p.message(w, r, http.StatusConflict, "Nothing was done", why.Error()+".")
			case err != nil:
				p.unavailable(w, r, err)
			case enough == nil:
				redirect(w, http.StatusSeeOther, p.Access.base.Path+"/accounts")
			default: // to the thread
				redirect(w, http.StatusSeeOther, p.Access.base.Path+path.Dir(r.URL.EscapedPath()))
			}
		})
	}
	onThread := func(name string, enough func(permission string) bool, do func(ctx context.Context, t thread.ID, by orders.Person) error) {
		post("/threads/{owner}/{repo}/{n}/"+name, enough, func(r *http.Request, by orders.Person) error {
			t, _ := threadOf(r) // act has read it, too
			return do(r.Context(), t, by)
		})
	}
	for _, name := range []string{orders.Retry, orders.Stop, orders.Resume} {
		onThread(name, feedback.Writes, func(ctx context.Context, t thread.ID, by orders.Person) error {
			return orders.OnThread(ctx, p.Store, name, t, by)
		})
	}
	onThread("pause", feedback.Maintains, func(ctx context.Context, t thread.ID, by orders.Person) error {
		return orders.Pause(ctx, p.Store, t.Owner, t.Name, by)
	})
	onThread("unpause", feedback.Maintains, func(ctx context.Context, t thread.ID, by orders.Person) error {
		_, err := orders.Unpause(ctx, p.Store, t.Owner, t.Name, by)
		return err
	})
	post("/accounts/{account}/close", nil, func(r *http.Request, by orders.Person) error {
		return orders.CloseBreaker(r.Context(), p.Store, r.PathValue("account"), by)
	})
	post("/deliveries/{guid}/retry", nil, func(r *http.Request, by orders.Person) error {
		if r.PathValue("guid") == store.AllUnhandled {
			return orders.CannotError("there is no such delivery")
		}
		_, err := orders.RetryDelivery(r.Context(), p.Store, r.PathValue("guid"), by)
		return err
	})
}
