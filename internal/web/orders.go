package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/pawlbot/pawl/internal/orders"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/internal/text"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/thread"
)

// order is a button. It says why it cannot act, and how the same is done in a comment and in the shell.
type order struct {
	Name, Does     string
	Path           string // where it is posted to, from the first page
	Cannot         string
	Comment, Shell string
}

func escape(s string) string { return url.PathEscape(s) }

// ordersOf are the buttons of a thread's page.
func ordersOf(ctx context.Context, p *pages, by Person, t thread.ID, s thread.State) (all []order, err error) {
	barred := func(enough func(string) bool, why string) string {
		switch may, err := p.may(ctx, by, t.Repo(), enough); {
		case err != nil:
			return "GitHub does not say now whether you may"
		case !may:
			return why + " " + text.Line(t.Repo(), maxName)
		}
		return ""
	}
	cannot := barred(feedback.Writes, "you may not write to")
	paused, err := orders.PausedBy(ctx, p.Store, t.Owner, t.Name)
	if err != nil {
		return nil, err
	}
	for _, o := range []order{
		{Name: orders.Retry, Does: "Start one more attempt"}, {Name: orders.Stop, Does: "End the run"}, {Name: orders.Resume, Does: "Go on now, do not wait"},
	} {
		o.Path, o.Cannot = href(t)+"/"+o.Name, cannot
		o.Comment, o.Shell = "/pawl "+o.Name, fmt.Sprintf("pawl %s --config FILE %s", o.Name, text.Line(t.String(), maxName))
		if cannot == "" {
			o.Cannot = orders.Cannot(o.Name, s)
		}
		if o.Cannot == "" && paused != nil && o.Name != orders.Stop {
			o.Cannot = text.Line(paused.By, maxName) + " paused " + text.Line(t.Repo(), maxName)
		}
		all = append(all, o)
	}
	pause := order{Name: "pause", Does: "Let nothing begin in " + text.Line(t.Repo(), maxName)}
	if paused != nil {
		pause = order{Name: "unpause", Does: "Let work begin again in " + text.Line(t.Repo(), maxName)}
	}
	pause.Cannot, pause.Comment = barred(feedback.Maintains, "you do not maintain"), "/pawl "+pause.Name
	pause.Path, pause.Shell = href(t)+"/"+pause.Name, "pawl "+pause.Name+" --config FILE "+text.Line(t.Repo(), maxName)
	return append(all, pause), nil
}

// addOrders adds what the buttons do. Where one cannot act any more, a page says why.
func (p *pages) addOrders(to handlers) {
	post := func(path string, allowed may, do func(r *http.Request, by orders.Person) error, back func(r *http.Request) string) {
		to["POST "+path] = p.act(allowed, func(w http.ResponseWriter, r *http.Request, by Person) {
			ctx, cancel := context.WithTimeout(r.Context(), pageTime)
			defer cancel()
			err := do(r.WithContext(ctx), orders.Person{Login: by.Name(), ID: by.ID, Where: "on the pages", At: p.Now()})
			var why orders.CannotError
			switch {
			case errors.As(err, &why):
				p.message(w, r, http.StatusConflict, "Nothing was done", why.Error()+".")
			case err != nil:
				p.unavailable(w, r, err)
			default:
				p.back(w, back(r))
			}
		})
	}
	const one = "/threads/{owner}/{repo}/{n}"
	page := func(r *http.Request) string {
		return "/threads/" + escape(r.PathValue("owner")) + "/" + escape(r.PathValue("repo")) + "/" + escape(r.PathValue("n"))
	}
	for _, name := range []string{orders.Retry, orders.Stop, orders.Resume} {
		post(one+"/"+name, p.writers, func(r *http.Request, by orders.Person) error {
			t, err := thread.Parse(r.PathValue("owner") + "/" + r.PathValue("repo") + "#" + r.PathValue("n"))
			if err != nil {
				return orders.CannotError(noThread)
			}
			return orders.OnThread(r.Context(), p.Store, name, t, by)
		}, page)
	}
	post(one+"/pause", p.maintainers, func(r *http.Request, by orders.Person) error {
		return orders.Pause(r.Context(), p.Store, r.PathValue("owner"), r.PathValue("repo"), by)
	}, page)
	post(one+"/unpause", p.maintainers, func(r *http.Request, by orders.Person) error {
		_, err := orders.Unpause(r.Context(), p.Store, r.PathValue("owner"), r.PathValue("repo"), by)
		return err
	}, page)
	accounts := func(*http.Request) string { return "/accounts" }
	post("/accounts/{account}/close", p.operators, func(r *http.Request, by orders.Person) error {
		return orders.CloseBreaker(r.Context(), p.Store, r.PathValue("account"), by)
	}, accounts)
	post("/deliveries/{guid}/retry", p.operators, func(r *http.Request, by orders.Person) error {
		if r.PathValue("guid") == store.AllUnhandled {
			return orders.CannotError("there is no such delivery")
		}
		_, err := orders.RetryDelivery(r.Context(), p.Store, r.PathValue("guid"), by)
		return err
	}, accounts)
}
