{{- define "pawl.labels" -}}
{app.kubernetes.io/name: pawl, app.kubernetes.io/instance: {{ .Release.Name }}}
{{- end }}

{{- define "pawl.metadata" -}}
namespace: {{ .Release.Namespace }}
  labels: {{ include "pawl.labels" . }}
{{- end }}
