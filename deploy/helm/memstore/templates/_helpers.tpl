{{- define "memstore.name" -}}
{{ printf "%s-memstore" .Release.Name | replace "memstore-memstore" "memstore" | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "memstore.labels" -}}
app.kubernetes.io/name: memstore
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "memstore.allLabels" -}}
{{ include "memstore.labels" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{- define "memstore.secret" -}}
{{ .Values.database.existingSecret | default (include "memstore.name" .) }}
{{- end }}

{{/* Everything of a pod but its container's command: nobody is root, and only /tmp and its home can be written. */}}
{{- define "memstore.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
volumes:
  - {name: tmp, emptyDir: {}}
  - {name: home, emptyDir: {}}
{{- end }}

{{- define "memstore.container" -}}
image: "{{ .root.Values.image.repository }}:{{ .root.Values.image.tag | default .root.Chart.AppVersion }}"
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - {name: tmp, mountPath: /tmp}
  - {name: home, mountPath: /var/lib/memstore}
{{- with .root.Values.envFromSecrets }}
envFrom:
  {{- range . }}
  - secretRef: {name: {{ . }}}
  {{- end }}
{{- end }}
env:
  - name: MEMSTORE_DATABASE_URL
    valueFrom:
      secretKeyRef: {name: {{ include "memstore.secret" .root }}, key: {{ .login }}-url}
  {{- range $name, $value := .root.Values.env }}
  - {name: {{ $name }}, value: {{ $value | quote }}}
  {{- end }}
{{- end }}
