{{/* Sources of the projected volume that holds every secret as a file. Takes {root, database: {name, key}}. */}}
{{- define "postern.secretSources" -}}
{{- $root := .root -}}
{{- $v := $root.Values -}}
{{- $own := include "postern.fullname" $root -}}
- secret:
    name: {{ .database.name | default $own | quote }}
    items:
    - key: {{ and .database.name .database.key | default "database-url" | quote }}
      path: database-url
- secret:
    name: {{ $v.secretKey.existingSecret.name | default $own | quote }}
    items:
    - key: {{ and $v.secretKey.existingSecret.name $v.secretKey.existingSecret.key | default "secret-key" | quote }}
      path: secret-key
{{- if or $v.bootstrap.password $v.bootstrap.existingSecret.name }}
- secret:
    name: {{ $v.bootstrap.existingSecret.name | default $own | quote }}
    items:
    - key: {{ and $v.bootstrap.existingSecret.name $v.bootstrap.existingSecret.key | default "bootstrap-password" | quote }}
      path: bootstrap-password
{{- end }}
{{- range $v.secretFiles }}
- secret:
    name: {{ .name | quote }}
    items:
    - key: {{ .key | quote }}
      path: {{ .env | lower }}
{{- end }}
{{- end -}}

{{- define "postern.env" -}}
- name: POSTERN_DATABASE_URL_FILE
  value: /run/secrets/postern/database-url
- name: POSTERN_SECRET_KEY_FILE
  value: /run/secrets/postern/secret-key
{{- if or .Values.bootstrap.password .Values.bootstrap.existingSecret.name }}
- name: POSTERN_BOOTSTRAP_PASSWORD_FILE
  value: /run/secrets/postern/bootstrap-password
{{- end }}
{{- range .Values.secretFiles }}
- name: {{ .env }}
  value: /run/secrets/postern/{{ .env | lower }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Follows `env` of a container. */}}
{{- define "postern.envFrom" -}}
{{- with .Values.extraEnvFrom }}
envFrom:
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "postern.mounts" -}}
- name: config
  mountPath: /etc/postern
  readOnly: true
- name: secrets
  mountPath: /run/secrets/postern
  readOnly: true
- name: tmp
  mountPath: /tmp
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Takes {root, database, configMap, key}. */}}
{{- define "postern.volumes" -}}
- name: config
  configMap:
    name: {{ include "postern.fullname" .root | quote }}
    items:
    - key: {{ .key | default "postern.yaml" }}
      path: postern.yaml
- name: secrets
  projected:
    defaultMode: 288
    sources:
    {{- include "postern.secretSources" (dict "root" .root "database" .database) | nindent 4 }}
- name: tmp
  emptyDir:
    medium: Memory
    sizeLimit: 64Mi
{{- with .root.Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* What every pod of the chart has. Takes {root, component}. */}}
{{- define "postern.podCommon" -}}
{{- $v := .root.Values -}}
{{- with $v.imagePullSecrets }}
imagePullSecrets:
{{- range . }}
- name: {{ kindIs "map" . | ternary . (dict "name" .) | dig "name" "" | quote }}
{{- end }}
{{- end }}
serviceAccountName: {{ include "postern.serviceAccountName" .root | quote }}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  {{- toYaml $v.podSecurityContext | nindent 2 }}
{{- with $v.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with $v.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $v.tolerations }}
tolerations:
{{ toYaml . }}
{{- end }}
{{- with $v.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "postern.topologySpread" -}}
{{- $spread := .root.Values.topologySpread -}}
{{- if $spread.constraints }}
topologySpreadConstraints:
{{ toYaml $spread.constraints }}
{{- else if $spread.enabled }}
topologySpreadConstraints:
{{- $selector := include "postern.selector" . }}
{{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
- maxSkew: 1
  topologyKey: {{ . }}
  whenUnsatisfiable: {{ $spread.whenUnsatisfiable }}
  labelSelector:
    matchLabels:
      {{- $selector | nindent 6 }}
  matchLabelKeys: [pod-template-hash]
{{- end }}
{{- end }}
{{- end -}}

{{/* Kubernetes rejects `rollingUpdate`, which has a default, beside the type Recreate. */}}
{{- define "postern.strategy" -}}
{{- $strategy := .Values.strategy -}}
{{- toYaml (eq $strategy.type "Recreate" | ternary (omit $strategy "rollingUpdate") $strategy) -}}
{{- end -}}

{{/* preStop without a program in the image: endpoints and proxies hear of the end before the server does. */}}
{{- define "postern.preStop" -}}
{{- with .Values.preStopSeconds }}
lifecycle:
  preStop:
    sleep:
      seconds: {{ . }}
{{- end }}
{{- end -}}

{{- define "postern.httpProbes" -}}
{{- $probes := .Values.probes -}}
startupProbe:
  httpGet: { path: /readyz, port: admin }
  periodSeconds: {{ $probes.startup.periodSeconds }}
  timeoutSeconds: {{ $probes.readiness.timeoutSeconds }}
  failureThreshold: {{ $probes.startup.failureThreshold }}
livenessProbe:
  httpGet: { path: /healthz, port: admin }
  periodSeconds: {{ $probes.liveness.periodSeconds }}
  timeoutSeconds: {{ $probes.liveness.timeoutSeconds }}
  failureThreshold: {{ $probes.liveness.failureThreshold }}
{{- end -}}

{{- define "postern.readinessProbe" -}}
{{- $readiness := .Values.probes.readiness -}}
readinessProbe:
  {{- if eq $readiness.type "grpc" }}
  grpc: { port: 9191, service: envoy.service.auth.v3.Authorization }
  {{- else }}
  httpGet: { path: /readyz, port: admin }
  {{- end }}
  periodSeconds: {{ $readiness.periodSeconds }}
  timeoutSeconds: {{ $readiness.timeoutSeconds }}
  failureThreshold: {{ $readiness.failureThreshold }}
{{- end -}}

{{- define "postern.checksums" -}}
checksum/config: {{ include (print .Template.BasePath "/configmap.yaml") . | sha256sum }}
{{- if or .Values.database.url .Values.secretKey.value .Values.bootstrap.password }}
checksum/secret: {{ include (print .Template.BasePath "/secret.yaml") . | sha256sum }}
{{- end }}
{{- end -}}
