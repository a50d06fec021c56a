// Starts the API reference (@scalar/api-reference, served by us) on the OpenAPI document of this service.
const place = document.querySelector("#reference");
const { try: trying, audience } = place.dataset;
const nonce = document.querySelector("meta[property=csp-nonce]").nonce;

// The policy of the page allows only style elements that carry its nonce; some that the reference makes lack it.
const create = document.createElement.bind(document);
document.createElement = (name, options) => {
  const made = create(name, options);
  if (made instanceof HTMLStyleElement) made.nonce = nonce;
  return made;
};

const others = ["c", "clojure", "csharp", "dart", "fsharp", "go", "http", "java", "julia", "kotlin", "node", "objc", "ocaml",
  "php", "powershell", "r", "ruby", "rust", "swift"];

const { createApiReference } = await import("/docs/reference/standalone.esm.js");
place.textContent = "";
createApiReference(place, {
  url: "/openapi.json",
  // Requests stay on this origin, whatever name the browser has for it: the page may call no other.
  ...(trying === "yes" && { servers: [{ url: location.origin, description: "This sandbox" }] }),
  hideTestRequestButton: trying !== "yes",
  authentication: {
    preferredSecurityScheme: "clientCredentials",
    securitySchemes: {
      clientCredentials: {
        flows: {
          clientCredentials: {
            tokenUrl: `${location.origin}/oauth/token`,
            "x-scalar-credentials-location": "body",
            "x-scalar-security-body": { audience },
          },
        },
      },
    },
  },
  defaultHttpClient: { targetKey: "shell", clientKey: "curl" },
  hiddenClients: {
    ...Object.fromEntries(others.map((name) => [name, true])),
    js: ["axios", "ofetch", "jquery", "xhr"],
    python: ["python3", "aiohttp", "httpx_sync", "httpx_async"],
    shell: ["wget", "httpie"],
  },
  // Nothing is fetched from elsewhere, reported to anybody, or kept in the browser.
  withDefaultFonts: false,
  telemetry: false,
  persistAuth: false,
  showDeveloperTools: "never",
  agent: { disabled: true },
  mcp: { disabled: true },
  hideClientButton: true,
  documentDownloadType: "json",
  theme: "none",
  hideDarkModeToggle: true,
  defaultOpenFirstTag: true,
});
