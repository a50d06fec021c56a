// Starts the API reference (@scalar/api-reference, served by this service) with the OpenAPI document of this service.
const place = document.querySelector("#reference");
const { try: trying, audience } = place.dataset;
const nonce = document.querySelector("meta[property=csp-nonce]").nonce;

// The page's security policy allows only style elements with its nonce. The reference makes some without, so add the nonce.
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
  // The page's policy allows requests to its own origin only, so use the origin that the browser used.
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
  // Fetch nothing from other sites, send no telemetry, and store nothing in the browser.
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
