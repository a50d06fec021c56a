<?php
// Receives Cuota's webhooks: PHP 8.1 or later, nothing to install. Serve it as index.php, or try it with PHP's own server:
// WEBHOOK_SECRET=whsec_... SIGNING_SECRET=signing_... INBOX=inbox php -S 127.0.0.1:8400 receiver.php
// While the signing secret is replaced, SIGNING_SECRET holds the old and the new one, separated by a space.
declare(strict_types=1);

const TOLERANCE = 300; // seconds
const MOST_BYTES = 1024 * 1024;
$webhookKey = base64_decode(preg_replace('/^whsec_/', '', (string) getenv('WEBHOOK_SECRET')), true);
$signingKeys = array_filter(explode(' ', (string) getenv('SIGNING_SECRET')));
$inbox = getenv('INBOX') ?: __DIR__ . '/inbox'; // a folder that the web server does not serve
if (!$webhookKey || !$signingKeys) {
    error_log('An empty secret proves nothing.');
    http_response_code(500);
    exit;
}

// Returns whether both signatures match exactly these bytes, and the timestamp is less than five minutes off.
function genuine(string $body, string $webhookKey, array $signingKeys): bool
{
    $name = $_SERVER['HTTP_WEBHOOK_ID'] ?? '';
    $sentAt = $_SERVER['HTTP_WEBHOOK_TIMESTAMP'] ?? '';
    if (!preg_match('/^\w{1,100}$/D', $name) || !preg_match('/^[0-9]{1,12}$/D', $sentAt)) {
        return false;
    }
    if (abs(time() - (int) $sentAt) > TOLERANCE) {
        return false;
    }
    $wanted = 'v1,' . sign($webhookKey, "$name.$sentAt.$body");
    // During a rotation the header has two signatures, and one of them must match. Compare all, each in constant time.
    $fits = false;
    foreach (explode(' ', $_SERVER['HTTP_WEBHOOK_SIGNATURE'] ?? '') as $given) {
        $fits = hash_equals($wanted, $given) || $fits;
    }
    $ours = false;
    foreach ($signingKeys as $key) {
        $ours = hash_equals(sign($key, $body), $_SERVER['HTTP_X_PAY_SIGNATURE'] ?? '') || $ours;
    }
    return $fits && $ours;
}

function sign(string $key, string $message): string
{
    return base64_encode(hash_hmac('sha256', $message, $key, true));
}

// Stores the event in the inbox, on the disk, under its id. Returns false if it is already there.
function keep(string $inbox, string $name, string $body): bool
{
    $kept = "$inbox/$name.json";
    $new = "$inbox/.new-" . bin2hex(random_bytes(16));
    try {
        $file = fopen($new, 'x');
        if (!$file || fwrite($file, $body) !== strlen($body) || !fsync($file)) {
            throw new RuntimeException('The inbox cannot be written to.');
        }
        if (@link($new, $kept)) {
            return true;
        }
        if (is_file($kept)) {
            return false;
        }
        throw new RuntimeException('The inbox cannot be written to.');
    } finally {
        @unlink($new);
    }
}

// Answers 204 for a webhook that is stored now or was stored before, and 401 for one whose signature is wrong. The work is
// done later, from the inbox. Every failure answers 500: the webhook is not stored, and is sent again.
http_response_code(500);
if (!is_dir($inbox)) {
    mkdir($inbox, 0700, true);
}
$body = file_get_contents('php://input', length: MOST_BYTES + 1);
if (strlen($body) > MOST_BYTES) {
    http_response_code(413);
} elseif (!genuine($body, $webhookKey, $signingKeys)) {
    http_response_code(401);
} else {
    if (keep($inbox, $_SERVER['HTTP_WEBHOOK_ID'], $body)) {
        $event = json_decode($body, true);
        error_log("$event[type] $event[id]");
    }
    http_response_code(204);
}
