{{- define "postern.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* At most 40 characters, so that every suffix fits into the 63 of a label. */}}
{{- define "postern.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "postern.name" . -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "postern.ownLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/name: {{ include "postern.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: {{ index .Values.commonLabels "app.kubernetes.io/part-of" | default "postern" | quote }}
{{- end -}}

{{/* Takes labels, and leaves out those that the chart sets itself: an object with a label twice is no valid YAML. */}}
{{- define "postern.moreLabels" -}}
{{- with omit . "helm.sh/chart" "app.kubernetes.io/name" "app.kubernetes.io/instance" "app.kubernetes.io/version" "app.kubernetes.io/managed-by" "app.kubernetes.io/part-of" "app.kubernetes.io/component" }}
{{- toYaml . }}
{{- end }}
{{- end -}}

{{/* Labels of pods. Takes {root, component, injection?}. */}}
{{- define "postern.podLabels" -}}
{{- include "postern.ownLabels" .root }}
app.kubernetes.io/component: {{ .component }}
{{- with include "postern.moreLabels" (merge (dict) .root.Values.podLabels (.injection | default dict) .root.Values.commonLabels) }}
{{ . }}
{{- end }}
{{- end -}}

{{/* Takes {root, component}. Never changes between releases: selectors are immutable. */}}
{{- define "postern.selector" -}}
app.kubernetes.io/name: {{ include "postern.name" .root | quote }}
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* Annotations of pods. Takes {own, more}: the chart's own as a text, and others, of which it leaves out those that the chart has. */}}
{{- define "postern.podAnnotations" -}}
{{- $own := fromYaml .own -}}
{{- .own }}
{{- range $key, $value := .more }}
{{- if not (hasKey $own $key) }}
{{ toYaml (dict $key $value) }}
{{- end }}
{{- end }}
{{- end -}}

{{/* metadata of an object. Takes {root, name, component, wave?, namespace?, cluster?, labels?, annotations?}. */}}
{{- define "postern.metadata" -}}
{{- $root := .root -}}
metadata:
  name: {{ .name | quote }}
  {{- if not .cluster }}
  namespace: {{ .namespace | default $root.Release.Namespace | quote }}
  {{- end }}
  labels:
    {{- include "postern.ownLabels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
    {{- with include "postern.moreLabels" (merge (dict) (.labels | default dict) $root.Values.commonLabels) }}
    {{- . | nindent 4 }}
    {{- end }}
  {{- $annotations := merge (dict) (.annotations | default dict) $root.Values.commonAnnotations }}
  {{- if and $root.Values.annotations.argoSyncWaves .wave }}
  {{- $_ := set $annotations "argocd.argoproj.io/sync-wave" (toString .wave) }}
  {{- end }}
  {{- with $annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{- define "postern.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "postern.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{/* Takes the image's values, with a tag. */}}
{{- define "postern.imageName" -}}
{{- with .registry }}{{ trimSuffix "/" . }}/{{ end -}}
{{- if .digest }}{{ printf "%s@%s" .repository .digest }}{{ else }}{{ printf "%s:%s" .repository .tag }}{{ end -}}
{{- end -}}

{{- define "postern.image" -}}
{{- include "postern.imageName" (merge (dict "tag" (.Values.image.tag | default .Chart.AppVersion)) .Values.image) -}}
{{- end -}}

{{- define "postern.envoyImage" -}}
{{- include "postern.imageName" .Values.envoy.image -}}
{{- end -}}

{{/* The families of a Service. */}}
{{- define "postern.ipFamilies" -}}
{{- with .Values.service.ipFamilyPolicy }}
ipFamilyPolicy: {{ . }}
{{- end }}
{{- with .Values.service.ipFamilies }}
ipFamilies: {{ toJson . }}
{{- end }}
{{- end -}}

{{- define "postern.tlsSecret" -}}
{{- .Values.tls.existingSecret | default (printf "%s-grpc-tls" (include "postern.fullname" .)) -}}
{{- end -}}

{{/* The component of the Deployment that serves the API: with the gate, or alone. The same in both modes, because it is in selectors. */}}
{{- define "postern.component" -}}
server
{{- end -}}

{{/* Refuses an upgrade that would fail half-way: Kubernetes does not change the selector of a Deployment. Takes {root, name, component}. */}}
{{- define "postern.refuseSelector" -}}
{{- with lookup "apps/v1" "Deployment" .root.Release.Namespace .name -}}
{{- $live := toJson .spec.selector.matchLabels -}}
{{- $wanted := include "postern.selector" $ | fromYaml | toJson -}}
{{- /* Helm itself refuses to touch the Deployment of another release. */ -}}
{{- $isOurs := eq (dig "annotations" "meta.helm.sh/release-name" "" .metadata) $.root.Release.Name -}}
{{- if and $isOurs (ne $live $wanted) -}}
{{- fail (printf "The Deployment %s has the selector %s, and Kubernetes cannot change it to %s. Nothing was changed. Delete the Deployment without its pods (kubectl -n %s delete deployment %s --cascade=orphan) and upgrade again, as docs/kubernetes.md describes in \"Upgrade from 0.2.0\"." $.name $live $wanted $.root.Release.Namespace $.name) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
`replicas` of a Deployment. With autoscaling it is the number that the Deployment has, because an upgrade that removes the member sets 1. It is
left out if Helm applies on the server and is not the only owner of the number: then the number stays, and a later rollback meets no conflict.
Without a cluster (`helm template`) there is no member. Takes {root, name, count}.
*/}}
{{- define "postern.replicas" -}}
{{- if not .root.Values.autoscaling.enabled -}}
replicas: {{ .count }}
{{- else -}}
{{- with lookup "apps/v1" "Deployment" .root.Release.Namespace .name -}}
{{- $applies := false -}}
{{- $owns := false -}}
{{- $scaled := false -}}
{{- range .metadata.managedFields -}}
{{- if and (eq .manager "helm") (eq .operation "Apply") -}}
{{- $applies = true -}}
{{- $owns = hasKey (dig "f:spec" dict .fieldsV1) "f:replicas" -}}
{{- else if eq (default "" .subresource) "scale" -}}
{{- $scaled = true -}}
{{- end -}}
{{- end -}}
{{- if or (not $applies) (and $owns (not $scaled)) -}}
replicas: {{ int .spec.replicas }}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The label with which Istio injects its sidecar into a pod, also in a namespace without a label. */}}
{{- define "postern.injection" -}}
{{- if and (ne .Values.mesh.istio.profile "none") .Values.mesh.istio.mutualTls -}}
sidecar.istio.io/inject: "true"
{{- end -}}
{{- end -}}

{{/* Milliseconds of a duration such as 5s, 500ms or 720h; 0 for 0. */}}
{{- define "postern.milliseconds" -}}
{{- $unit := regexFind "[a-z]+$" (toString .) | default "s" -}}
{{- mul (regexFind "^[0-9]+" (toString .)) (get (dict "ms" 1 "s" 1000 "m" 60000 "h" 3600000 "d" 86400000) $unit) -}}
{{- end -}}

{{/* Its seconds, rounded up. */}}
{{- define "postern.seconds" -}}
{{- div (add (include "postern.milliseconds" .) 999) 1000 -}}
{{- end -}}

{{/* Bytes of a size such as 4194304, 512 KiB or 4 MiB. A number of a values file is a float64. */}}
{{- define "postern.bytes" -}}
{{- $text := kindIs "string" . | ternary . (int64 . | toString) -}}
{{- $number := regexFind "^[0-9]+" $text | int64 -}}
{{- if hasSuffix "KiB" $text }}{{ mul $number 1024 -}}
{{- else if hasSuffix "MiB" $text }}{{ mul $number 1048576 -}}
{{- else }}{{ $number }}{{ end -}}
{{- end -}}

{{/* Seconds in which Envoy's requests may end. The gate needs the rest of the grace period: its own drain, and a margin. */}}
{{- define "postern.drainLimit" -}}
{{- $notice := include "postern.seconds" (dig "drain" "notice" "0" .Values.config) | int -}}
{{- max 1 (int .Values.preStopSeconds) (sub (int .Values.terminationGracePeriodSeconds) (add 5 $notice)) -}}
{{- end -}}

{{/* Refuses values that are right one by one and cannot work together, in a sentence that says what to set. */}}
{{- define "postern.refuse" -}}
{{- $v := .Values -}}
{{- if not $v.enabled -}}
{{- fail "enabled: only a chart that has this one as a dependency, with condition: postern.enabled, can leave it out." -}}
{{- end -}}
{{- if and $v.database.url $v.database.existingSecret.name -}}
{{- fail "database: set url or existingSecret.name, not both." -}}
{{- end -}}
{{- if not (or $v.database.url $v.database.existingSecret.name) -}}
{{- fail "database: set existingSecret.name to a Secret with the URL of a PostgreSQL, or url. The chart brings no database." -}}
{{- end -}}
{{- if and $v.database.url (not (regexMatch "^postgres(ql)?://[^[:space:]]+$" $v.database.url)) -}}
{{- fail "database.url: expected postgresql://user:password@host:port/database." -}}
{{- end -}}
{{- if and $v.secretKey.value $v.secretKey.existingSecret.name -}}
{{- fail "secretKey: set value or existingSecret.name, not both." -}}
{{- end -}}
{{- if not (or $v.secretKey.value $v.secretKey.existingSecret.name) -}}
{{- fail "secretKey: set existingSecret.name to a Secret with at least 32 random characters, or value. The chart makes none, because it would change with every render." -}}
{{- end -}}
{{- if and $v.bootstrap.password $v.bootstrap.existingSecret.name -}}
{{- fail "bootstrap: set password or existingSecret.name, not both." -}}
{{- end -}}
{{- if $v.tls.enabled -}}
{{- if eq $v.mode "sidecar" -}}
{{- fail "tls.enabled: the gate of the mode sidecar listens on a Unix socket, which has no TLS. Set tls.enabled to false." -}}
{{- end -}}
{{- if not (or $v.tls.existingSecret $v.tls.certManager.enabled) -}}
{{- fail "tls.enabled: set tls.existingSecret, or tls.certManager.enabled and its issuerRef.name." -}}
{{- end -}}
{{- if eq $v.probes.readiness.type "grpc" -}}
{{- fail "probes.readiness.type: the kubelet's gRPC probe has no TLS. Set it to http while tls.enabled is true." -}}
{{- end -}}
{{- if ne $v.mesh.istio.profile "none" -}}
{{- fail "tls.enabled: Istio's own mutual TLS protects checks in a mesh. Set tls.enabled to false, or mesh.istio.profile to none." -}}
{{- end -}}
{{- end -}}
{{- if and $v.tls.certManager.enabled $v.tls.existingSecret -}}
{{- fail "tls: set existingSecret or certManager.enabled, not both." -}}
{{- end -}}
{{- if and $v.tls.certManager.enabled (not $v.tls.enabled) -}}
{{- fail "tls.certManager.enabled: no certificate is issued while tls.enabled is false. Set tls.enabled to true, or tls.certManager.enabled to false." -}}
{{- end -}}
{{- if and $v.tls.certManager.enabled (not $v.tls.certManager.issuerRef.name) -}}
{{- fail "tls.certManager.issuerRef.name: name the issuer of the certificates." -}}
{{- end -}}
{{- with $v.tls.certManager -}}
{{- if and .enabled (ge (include "postern.milliseconds" .renewBefore | int64) (include "postern.milliseconds" .duration | int64)) -}}
{{- fail (printf "tls.certManager: renewBefore (%s) must be shorter than duration (%s)." .renewBefore .duration) -}}
{{- end -}}
{{- end -}}
{{- if and $v.tls.enabled (ne $v.mesh.envoyGateway.profile "none") -}}
{{- $away := ne ($v.mesh.envoyGateway.namespace | default .Release.Namespace) .Release.Namespace -}}
{{- if and $v.tls.clientCertificates (not $v.mesh.envoyGateway.clientSecret) -}}
{{- if not (and $v.tls.certManager.enabled $v.tls.certManager.clientCertificate) -}}
{{- fail "mesh.envoyGateway.clientSecret: name the Secret, in the Gateway's namespace, with the certificate that Envoy presents." -}}
{{- end -}}
{{- if and $away (ne $v.tls.certManager.issuerRef.kind "ClusterIssuer") -}}
{{- fail "tls.certManager.issuerRef.kind: Envoy's certificate is issued in the Gateway's namespace, which an Issuer of another namespace cannot do. Set it to ClusterIssuer." -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and $v.migrations.serverRole (or (ne $v.migrations.mode "job") (not $v.migrations.existingSecret.name)) -}}
{{- fail "migrations.serverRole: set migrations.mode to job and migrations.existingSecret.name to a Secret with the URL of the role that owns the schema." -}}
{{- end -}}
{{- if and (eq $v.mode "sidecar") (eq $v.probes.readiness.type "grpc") -}}
{{- fail "probes.readiness.type: the API of the mode sidecar has no gRPC port. Set it to http." -}}
{{- end -}}
{{- if and (eq $v.mode "sidecar") (or (ne $v.mesh.istio.profile "none") (ne $v.mesh.envoyGateway.profile "none") $v.mesh.envoyGateway.admission.enabled) -}}
{{- fail "mesh: the profiles and envoyGateway.admission need the gate as a Service. Set mode to central." -}}
{{- end -}}
{{- $ports := list (int $v.envoy.port) (int $v.envoy.adminPort) 9090 -}}
{{- if and (eq $v.mode "sidecar") (lt (len (uniq $ports)) 3) -}}
{{- fail "envoy.port and envoy.adminPort must differ from each other and from 9090, the port of the gate beside Envoy." -}}
{{- end -}}
{{- if and (ne $v.mesh.istio.profile "none") (not $v.mesh.istio.gateway) -}}
{{- fail "mesh.istio.gateway: name the Gateway that is guarded." -}}
{{- end -}}
{{- if and (include "postern.injection" .) (ne (index $v.podLabels "sidecar.istio.io/inject" | default "true") "true") -}}
{{- fail "podLabels: without Istio's sidecar, the gateway cannot reach Postern by mutual TLS. Remove sidecar.istio.io/inject, or set mesh.istio.mutualTls to false if something else encrypts credentials." -}}
{{- end -}}
{{- if and (ne $v.mesh.envoyGateway.profile "none") (not $v.mesh.envoyGateway.gateway) -}}
{{- fail "mesh.envoyGateway.gateway: name the Gateway that is guarded." -}}
{{- end -}}
{{- if or (ne $v.mesh.istio.profile "none") (ne $v.mesh.envoyGateway.profile "none") -}}
{{- $body := dig "inspect" "max-body" "0" $v.config | include "postern.bytes" | int64 -}}
{{- if lt (int64 $v.mesh.maxRequestBytes) $body -}}
{{- fail (printf "mesh.maxRequestBytes: the proxy sends %d bytes of a body, and config.inspect.max-body needs %d. Set it to %d." (int64 $v.mesh.maxRequestBytes) $body $body) -}}
{{- end -}}
{{- end -}}
{{- if and $v.ingress.enabled (not $v.ingress.hosts) -}}
{{- fail "ingress.hosts: name at least one host." -}}
{{- end -}}
{{- if and $v.httpRoute.enabled (not $v.httpRoute.parentRefs) -}}
{{- fail "httpRoute.parentRefs: name at least one Gateway." -}}
{{- end -}}
{{- $name := include "postern.fullname" . -}}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" $name) -}}
{{- fail (printf "fullnameOverride: %s cannot begin the name of a Service. Set it to lowercase letters, digits and hyphens, with a letter at its beginning." $name) -}}
{{- end -}}
{{- include "postern.refuseSelector" (dict "root" . "name" $name "component" (include "postern.component" .)) -}}
{{- if eq $v.mode "sidecar" -}}
{{- include "postern.refuseSelector" (dict "root" . "name" (printf "%s-envoy" $name) "component" "envoy") -}}
{{- end -}}
{{- with $v.metrics.serviceMonitor -}}
{{- if and .enabled (gt (include "postern.milliseconds" .scrapeTimeout | int64) (include "postern.milliseconds" .interval | int64)) -}}
{{- fail (printf "metrics.serviceMonitor: scrapeTimeout (%s) must not exceed interval (%s)." .scrapeTimeout .interval) -}}
{{- end -}}
{{- end -}}
{{- $rolling := $v.strategy.rollingUpdate | default dict -}}
{{- $zeros := list "0" "0%" -}}
{{- if and (eq $v.strategy.type "RollingUpdate") (has (toString $rolling.maxSurge) $zeros) (has (toString $rolling.maxUnavailable) $zeros) -}}
{{- fail "strategy.rollingUpdate: maxSurge and maxUnavailable must not both be 0. Set one of them to 1." -}}
{{- end -}}
{{- if gt (int $v.autoscaling.minReplicas) (int $v.autoscaling.maxReplicas) -}}
{{- fail "autoscaling: minReplicas must not exceed maxReplicas." -}}
{{- end -}}
{{- if and $v.autoscaling.enabled (not (or $v.autoscaling.targetCPUUtilizationPercentage $v.autoscaling.targetMemoryUtilizationPercentage)) -}}
{{- fail "autoscaling: set a target for CPU or memory." -}}
{{- end -}}
{{- $notice := include "postern.seconds" (dig "drain" "notice" "0" $v.config) | int -}}
{{- if le (int $v.terminationGracePeriodSeconds) (add (int $v.preStopSeconds) $notice) -}}
{{- fail (printf "terminationGracePeriodSeconds: %d must exceed preStopSeconds (%d) and config.drain.notice (%d s) together, or the kubelet kills a server that still decides." (int $v.terminationGracePeriodSeconds) (int $v.preStopSeconds) $notice) -}}
{{- end -}}
{{- end -}}
