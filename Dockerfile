# Build: docker build --build-arg VERSION=1.2.3 --build-arg COMMIT=$(git rev-parse HEAD) -t pawl .
# Run:   docker run -v pawl:/data -p 8080:8080 --env-file pawl.env \
#          --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined pawl
#
# /data holds pawl.yml and the files that it names by relative paths: the database, the key, clones and transcripts.
# Agents run in bubblewrap, which creates user and mount namespaces and its own /proc. Docker's default seccomp and
# AppArmor profiles and its masked paths forbid that, hence the options above. Without these options, set sandbox.mode
# to none: the container is then the only sandbox. In Kubernetes, prefer sandbox.mode pod; see config/deploy/README.md.
#
# Debian 12's bubblewrap 0.8 and git 2.39 are new enough: Pawl needs git 2.38, and uses --disable-userns where
# bubblewrap has it (since 0.8). --build-arg AGENT=codex, or another agent below, adds that CLI. Other CLIs and their
# requirements belong under /usr, in an image built on this one. config/deploy/README.md has an example, a compose file,
# a Helm chart and Kubernetes manifests.

FROM golang:1.26.8-bookworm@sha256:a688600ca24f8a4d3ca77f95b0dd40704a9fc787c826660eb7ba0b641b8b175d AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
ARG COMMIT=unknown
RUN CGO_ENABLED=0 go build -trimpath \
    -ldflags "-s -w -X main.version=${VERSION} -X main.commit=${COMMIT}" \
    -o /usr/local/bin/pawl ./cmd/pawl

FROM debian:bookworm-slim@sha256:3783cc01769c7b2b1b83a5c5ad96c815348e28ed7da68e2e3687004faa906251
# tini reaps the processes that a killed agent leaves to process 1.
RUN apt-get update \
    && apt-get install -y --no-install-recommends bubblewrap ca-certificates git tini \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --create-home --shell /usr/sbin/nologin pawl \
    && install -d -o pawl -g pawl /data
# AGENT is one of none, codex, claude, gemini, opencode or qwen.
ARG AGENT=none
# Debian's Node is too old for two of the CLIs. So npm installs a newer one, and Debian's is removed again.
RUN case "$AGENT" in \
    none) exit 0 ;; \
    codex) package=@openai/codex@0.169.0 ;; \
    claude) package=@anthropic-ai/claude-code@2.1.197 ;; \
    gemini) package=@google/gemini-cli@0.61.0 ;; \
    opencode) package=opencode-ai@1.18.33 ;; \
    qwen) package=@qwen-code/qwen-code@0.24.4 ;; \
    *) echo "AGENT=$AGENT is not known: use none, codex, claude, gemini, opencode or qwen" >&2; exit 1 ;; \
    esac \
    && node=node-linux-$(dpkg --print-architecture | sed 's/amd64/x64/') \
    && apt-get update && apt-get install -y --no-install-recommends npm \
    && npm install --global --prefix /usr/local "$node@22.23.3" \
    && ln -sf "../lib/node_modules/$node/bin/node" /usr/local/bin/node \
    && npm install --global --prefix /usr/local "$package" \
    && apt-get purge -y --auto-remove npm && rm -rf /var/lib/apt/lists/* /root/.npm \
    && "$AGENT" --version
# A release replaces the build stage with the image from .ci/release.
COPY --from=build /usr/local/bin/pawl /usr/local/bin/pawl
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8080 8081
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s \
    CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/8080 && printf 'GET /healthz HTTP/1.0\\r\\n\\r\\n' >&3 && head -n 1 <&3 | grep -q ' 200 '"]
ENTRYPOINT ["tini", "--", "pawl"]
CMD ["serve", "--config", "/data/pawl.yml", "--listen", "0.0.0.0:8080"]
