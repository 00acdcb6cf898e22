package handlers

// GitHubAppAuthorization handles that a person takes back what they allowed the App at a login ("Revoke" on their own
// settings page at GitHub): their sessions on the pages end.
type GitHubAppAuthorization struct{ handler }

func authorization(p *payload) []Activity {
	if p.Action != "revoked" {
		return nil
	}
	if p.Sender.ID == 0 {
		return []Activity{{What: unsent}}
	}
	return []Activity{{What: signedOut{p.Sender.ID}}}
}
