{{- define "pawl.labels" -}}
{app.kubernetes.io/name: pawl, app.kubernetes.io/instance: {{ .Release.Name }}}
{{- end }}

{{- define "pawl.metadata" -}}
namespace: {{ .Release.Namespace }}
  labels: {{ include "pawl.labels" . }}
{{- end }}

{{- /* Workers have another name, so that no Service, budget or StatefulSet selects them. */ -}}
{{- define "pawl.workers" -}}
{app.kubernetes.io/name: pawl-worker, app.kubernetes.io/instance: {{ .Release.Name }}}
{{- end }}

{{- define "pawl.image" -}}
{{ .Values.image | default (printf "ghcr.io/pawlbot/pawl:%s-%s" .Chart.AppVersion .Values.agent) | quote }}
{{- end }}

{{- define "pawl.egress" -}}
egress:
    - to:
        - namespaceSelector:
            matchLabels: {kubernetes.io/metadata.name: kube-system}
          podSelector:
            matchLabels: {k8s-app: kube-dns}
      ports:
        - {protocol: UDP, port: 53}
        - {protocol: TCP, port: 53}
    {{- with .Values.networkPolicy.postgres }}
    - to:
        {{- range . }}
        - ipBlock: {cidr: {{ . }}}
        {{- end }}
      ports:
        - {protocol: TCP, port: 5432}
    {{- end }}
    # HTTPS to public addresses only: GitHub, model providers and package registries. An
    # Enterprise Server or a provider at a private address needs its own rule, and so does
    # a cluster that reaches GitHub by NAT64: those addresses can mean private IPv4 ones.
    - to:
        - ipBlock:
            cidr: 0.0.0.0/0
            except: [0.0.0.0/8, 10.0.0.0/8, 100.64.0.0/10, 127.0.0.0/8, 169.254.0.0/16, 172.16.0.0/12, 192.168.0.0/16, 224.0.0.0/4]
        - ipBlock:
            cidr: ::/0
            except: ["::1/128", "64:ff9b::/96", "64:ff9b:1::/48", "fc00::/7", "fe80::/10", "ff00::/8"]
      ports:
        - {protocol: TCP, port: 443}
{{- end }}
