// The issuer of npm's `oidc-provider`, which the OpenID Foundation has certified: client credentials with its own checks of the client, and JWT
// access tokens (RFC 9068).
//
// node oidc_provider.mjs FOLDER SECONDS METHOD: FOLDER has node_modules, tokens are good for SECONDS, and the client proves itself by METHOD.
// Prints its port and its public key as one line of JSON, then one line for each token that it has issued.

import { generateKeyPairSync, randomBytes } from "node:crypto";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [folder, seconds, method] = process.argv.slice(2);
const from = createRequire(`${folder}/package.json`);
const { default: Provider } = await import(pathToFileURL(from.resolve("oidc-provider")));

const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const key = { ...privateKey.export({ format: "jwk" }), kid: "1", use: "sig", alg: "RS256" };
const service = {
  scope: "orders",
  audience: "svc",
  accessTokenFormat: "jwt",
  accessTokenTTL: Number(seconds),
  jwt: { sign: { alg: "RS256" } },
};

const server = createServer();
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address();
  const provider = new Provider(`http://127.0.0.1:${port}`, {
    clients: [{
      client_id: "gw",
      client_secret: "p@ss word",
      grant_types: ["client_credentials"],
      redirect_uris: [],
      response_types: [],
      token_endpoint_auth_method: method,
    }],
    cookies: { keys: [randomBytes(32).toString("hex")] },
    jwks: { keys: [key] },
    scopes: ["orders"],
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: false },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => "urn:svc",
        getResourceServerInfo: () => service,
      },
    },
  });
  provider.on("grant.success", ({ oidc: { params }, body }) => {
    console.log(JSON.stringify({ grant: params.grant_type, ...body }));
  });
  server.on("request", provider.callback());
  const { n, e } = publicKey.export({ format: "jwk" });
  console.log(JSON.stringify({ port, n, e }));
});
