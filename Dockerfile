# cryptodl as a container: the lake and the state of runs are in the volume /data.
#   docker build -t cryptodl .
#   docker run --rm --read-only --tmpfs /tmp -v "$PWD/data:/data" cryptodl vision --symbols BTCUSDT --days 7
FROM node:22-bookworm-slim AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc tsconfig.json tsconfig.build.json ./
COPY scripts scripts
COPY assets assets
COPY bin bin
COPY config config
COPY src src
RUN npm ci
RUN npm run build
RUN npm ci --omit=dev
# The optional packages: of the queue, and of lakes in buckets. Both flags: package.json has them for its tests, and must not change.
RUN npm install --no-save --save-prod --omit=dev --ignore-scripts bullmq@6.7.0 ioredis@6.0.0 @aws-sdk/client-s3@3.1175.0 @aws-sdk/lib-storage@3.1175.0

FROM node:22-bookworm-slim
# tini starts the program as its child and passes signals on: a process with the number 1 has no default handlers.
RUN apt-get update \
  && apt-get install --yes --no-install-recommends ca-certificates tini \
  && rm -rf /var/lib/apt/lists/*
WORKDIR /opt/cryptodl
COPY --from=build /build/node_modules node_modules
COPY --from=build /build/dist dist
COPY bin bin
COPY config config
COPY package.json LICENSE README.md ./
RUN ln -s /opt/cryptodl/bin/cryptodl.js /usr/local/bin/cryptodl
COPY scripts/every-day /usr/local/bin/every-day
RUN mkdir /data && chown node:node /data
ENV CRYPTODL_OUT=/data/lake CRYPTODL_STATE_DIR=/data/state
USER node
VOLUME /data
WORKDIR /data
ENTRYPOINT ["tini", "--", "cryptodl"]
CMD ["--help"]
