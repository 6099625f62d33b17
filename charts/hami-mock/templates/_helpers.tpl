{{- define "hami-mock.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "hami-mock.serviceAccountName" -}}
{{- .Values.serviceAccount.name | default (ternary (include "hami-mock.fullname" .) "default" .Values.serviceAccount.create) -}}
{{- end -}}

{{/* Whether the pod gets a token: where the agent asks the API server, unless the values say otherwise. */}}
{{- define "hami-mock.mountToken" -}}
{{- $offers := not (and .Values.driver.enabled .Values.driver.belowNvidiaPlugin) -}}
{{- $asks := or (and $offers (ne .Values.units "plugin")) (ne .Values.mode "plain") .Values.events .Values.pods .Values.labels .Values.dra.profile .Values.fleet | not | not -}}
{{- range .Values.vendors -}}
{{- $asks = or $asks (eq (get . "memory-factor" | toString) "auto") -}}
{{- end -}}
{{- ternary $asks .Values.serviceAccount.mountToken (eq (toString .Values.serviceAccount.mountToken) "auto") -}}
{{- end -}}

{{- define "hami-mock.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "hami-mock.labels" -}}
{{ include "hami-mock.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{/* A value as a flag takes it. Helm reads `on` as true, and every number as a float. */}}
{{- define "hami-mock.word" -}}
{{- if kindIs "string" . -}}
{{- . -}}
{{- else if kindIs "bool" . -}}
{{- ternary "on" "off" . -}}
{{- else if kindIs "slice" . -}}
{{- join "," . -}}
{{- else -}}
{{- toJson . -}}
{{- end -}}
{{- end -}}

{{/* The exporters that the agent stands in for: a list of name, port and flag. */}}
{{- define "hami-mock.exporters" -}}
{{- $found := list -}}
{{- if .Values.metrics.dcgm -}}
{{- $found = append $found (dict "name" "dcgm" "port" 9400 "flag" "DCGM_LISTEN") -}}
{{- end -}}
{{- if .Values.metrics.hamiMonitor -}}
{{- $found = append $found (dict "name" "hami-monitor" "port" 9394 "flag" "HAMI_MONITOR_LISTEN") -}}
{{- end -}}
{{- if .Values.metrics.vendors -}}
{{- $found = append $found (dict "name" "vendors" "port" 9397 "flag" "VENDOR_METRICS_LISTEN") -}}
{{- end -}}
{{- toJson $found -}}
{{- end -}}

{{/* A file that is given as YAML or as text. */}}
{{- define "hami-mock.file" -}}
{{- if kindIs "string" . }}{{ . }}{{ else }}{{ toYaml . }}{{ end -}}
{{- end -}}
