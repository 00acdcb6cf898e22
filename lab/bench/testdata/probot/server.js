// A Probot app that ignores the comments it gets: what make bench compares the
// answers to webhooks with. Arguments: host, port, private key file, secret.
import { readFileSync } from "node:fs";
import { Probot, Server } from "probot";

const [host, port, key, secret] = process.argv.slice(2);

const app = (probot) => {
  probot.on("issue_comment.created", async (context) => {
    if (!context.payload.comment.body.startsWith("/pawl")) return;
    throw new Error("the bench sends no commands");
  });
};

const server = new Server({
  host,
  port: Number(port),
  webhookPath: "/api/github/hook",
  Probot: Probot.defaults({
    appId: 1,
    privateKey: readFileSync(key, "utf8"),
    secret,
    logLevel: "warn",
  }),
});
await server.load(app);
await server.start();
