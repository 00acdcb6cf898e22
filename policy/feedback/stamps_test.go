package feedback

import "testing"

func TestSyncBotsTimestampsAreNotContent(t *testing.T) {
	for _, tc := range []struct{ was, now string }{
		{"_Last synced: 2026-11-28T02:26:56.541Z_", "_Last synced: 2026-11-28T02:31:07.112Z_"},
		{"**Last synced:** `2026-11-28 02:26`", "**Last synced:** `2026-11-28 02:31`"},
		{"| Field | Value |\n|---|---|\n| Last sync | 2026-11-28 02:26 UTC |", "| Field | Value |\n|---|---|\n| Last sync | 2026-11-28 02:31 UTC |"},
		{"<!-- synced 1 -->\n<sub>Synced from Linear ENG-12 on Nov 28, 2026, 2:26 AM</sub>", "<!-- synced 2 -->\n<sub>Synced from Linear ENG-12 on Nov 28, 2026, 2:31 AM</sub>"},
		{"*Jira sync: last updated by Automation at 28/Nov/26 2:26 AM*", "*Jira sync: last updated by Automation at 28/Nov/26 2:31 AM*"},
		{"Zap ran at __1764296816__", "Zap ran at __1764297067__"},
		{"> Notion page last edited: **November 28, 2026 2:26 AM**", "> Notion page last edited: **November 28, 2026 2:31 AM**"},
		{"_This dashboard was last updated 5 minutes ago_", "_This dashboard was last updated 9 minutes ago_"},
		{"Fix it.\n\n---\n_Zuletzt aktualisiert: 28.11.2026 um 02:26 Uhr_", "Fix it.\n\n---\n_Zuletzt aktualisiert: 28.11.2026 um 02:31 Uhr_"},
		{"最終更新: 2026年11月28日 02時26分", "最終更新: 2026年11月28日 02時31分"},
		{"*Build #1234*", "*Build #1235*"},
		{"<i>Generated at 2026-11-28T02:26:56+00:00</i>", "<i>Generated at 2026-11-28T02:31:07+00:00</i>"},
		{"Summary by CodeRabbit\n\n_Reviewed up to commit_ `5a1e5a1e5a1e`", "Summary by CodeRabbit\n\n_Reviewed up to commit_ `0badc0de0bad`"},
		{"Dernière mise à jour : **28/11/2026 02:26**", "Dernière mise à jour : **28/11/2026 02:31**"},
		{"- **Last checked**: Sat Nov 28 02:26:56 UTC 2026", "- **Last checked**: Sat Nov 28 02:31:07 UTC 2026"},
		{"`updated_at: 2026-11-28T02:26:56Z`", "`updated_at: 2026-11-28T02:31:07Z`"},
		{"Vor 5 Minuten aktualisiert", "Vor 9 Minuten aktualisiert"},
		{"Actualizado: 28/11/2026, 02:26", "Actualizado: 28/11/2026, 02:31"},
		{"Synced at `2026-11-28T02:26`", "Synced at `2026-11-28T02:31`"},
		{"This was automatically rebased on **2026-11-28 02:26**", "This was automatically rebased on **2026-11-28 02:31**"},
		{"Ultimo aggiornamento: 28/11/2026 02:26", "Ultimo aggiornamento: 28/11/2026 02:31"},
		{"Status as of 2026-11-28 02:26 UTC", "Status as of 2026-11-28 02:31 UTC"},
		{"Dernière mise à jour le 28/11/2026 à 02h26", "Dernière mise à jour le 28/11/2026 à 03h31"},
		{"**Última actualización:** 28 de noviembre de 2026, 02:26", "**Última actualización:** 29 de noviembre de 2026, 04:26"},
		{"Laatst bijgewerkt: 28-11-2026 02:26", "Laatst bijgewerkt: 29-11-2026 02:26"},
		{"Senast uppdaterad 2026-11-28 02:26", "Senast uppdaterad 2026-11-29 02:26"},
		{"Ostatnia aktualizacja: 28.11.2026 02:26", "Ostatnia aktualizacja: 29.11.2026 02:26"},
		{"Linear sync @ 1764296816", "Linear sync @ 1764300416"},
		{"Synced by Unito on Nov 28th, 2026 at 2:26 AM", "Synced by Unito on Nov 29th, 2026 at 3:26 AM"},
		{"Snapshot taken Friday, November 28, 2026 2:26 PM CET", "Snapshot taken Saturday, November 29, 2026 2:26 PM CET"},
		{"Pulled from Asana 5m ago", "Pulled from Asana 12m ago"},
		{"Stand: 28.11.2026", "Stand: 29.11.2026"},
	} {
		if j := Judge(description(tc.was, tc.now), onOwnPull()); j.Accepted {
			t.Errorf("%q → %q counts: %s", tc.was, tc.now, j.Reason)
		}
	}
}

func TestDatesThatMatterAreContent(t *testing.T) {
	for _, tc := range []struct{ was, now string }{
		{"deadline: 2026-12-01", "deadline: 2026-12-15"},
		{"**Deadline:** _2026-12-01_", "**Deadline:** _2026-12-15_"},
		{"Run the update at 2026-12-01T09:00:00Z", "Run the update at 2026-12-02T09:00:00Z"},
		{"Updated deadline: 2026-12-01", "Updated deadline: 2026-12-15"},
		{"The date must be updated to 2026-12-01", "The date must be updated to 2026-12-15"},
		{"| Release | 2026-12-01 |\n|---|---|\n| a | b |", "| Release | 2026-12-08 |\n|---|---|\n| a | b |"},
		{"Frist: 01.12.2026", "Frist: 15.12.2026"},
		{"_Last synced: 2026-11-28 02:26_\nPort 80", "_Last synced: 2026-11-28 02:31_\nPort 81"},
		{"Wait 5 minutes", "Wait 9 minutes"},
		{"Wird bis zum 28.11.2026 synchronisiert", "Wird bis zum 05.12.2026 synchronisiert"},
		{"Users created after 2026-11-28 see an error", "Users created after 2026-12-05 see an error"},
		{"Sync the clocks at 10:00", "Sync the clocks at 11:00"},
		{"Pull before 2026-11-28", "Pull before 2026-12-05"},
		{"Fix #1234", "Fix #1235"},
		{"Last day: 2026-12-01", "Last day: 2026-12-02"},
		{"I have checked that the parser fails for 2026-12-01", "I have checked that the parser fails for 2026-12-02"},
	} {
		if j := Judge(description(tc.was, tc.now), onOwnPull()); !j.Accepted {
			t.Errorf("%q → %q does not count: %s", tc.was, tc.now, j.Reason)
		}
	}
}
