package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"

	"github.com/pawlbot/pawl/internal/orders"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/policy"
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
	cannot := map[policy.Permission]string{
		policy.Write:    barred(feedback.Writes, "you may not write to"),
		policy.Maintain: barred(feedback.Maintains, "you do not maintain"),
	}
	paused, err := orders.PausedBy(ctx, p.Store, t.Owner, t.Name)
	if err != nil {
		return nil, err
	}
	for _, c := range onPages() {
		o := order{Name: c.Name, Does: c.Page, Cannot: cannot[c.Permission]}
		subject := render.Line(t.String(), maxName)
		if c.Effect == policy.Pauses {
			if c.Name != orders.Pausing(paused) {
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

// onPages are the commands that have a button on a thread's page.
func onPages() []policy.CommandRow {
	return slices.DeleteFunc(slices.Clone(policy.Commands), func(c policy.CommandRow) bool { return c.Page == "" })
}

// cannotOnThread says why a command has no effect on a thread now; empty where it has one. paused is who paused the
// thread's repository, nil for nobody.
func cannotOnThread(c policy.CommandRow, s thread.State, paused *thread.Operated, repo string) string {
	if why := orders.Cannot(c.Name, s); why != "" {
		return why
	}
	if paused == nil || c.Effect != policy.BeginsWork {
		return ""
	}
	return render.Line(paused.By, maxName) + " paused " + repo
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
	for _, c := range onPages() {
		onThread(c.Name, feedback.Enough(c), func(ctx context.Context, t thread.ID, by orders.Person) error {
			if c.Effect == policy.Pauses {
				return orders.OnRepository(ctx, p.Store, c.Name, t.Owner, t.Name, by)
			}
			return orders.OnThread(ctx, p.Store, c.Name, t, by)
		})
	}
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
