<?php
// Signs the request of openCheckout: PHP 8.0 or later, nothing to install.
// SIGNING_SECRET=signing_... php sign.php < request.json

// Returns the arguments of openCheckout: the exact text and its signature.
function sign_request(array|string $request, string $signingSecret): array
{
    $body = is_string($request) ? $request : json_encode($request, JSON_THROW_ON_ERROR);
    $signature = base64_encode(hash_hmac('sha256', $body, $signingSecret, true));
    return ['body' => $body, 'signature' => $signature];
}

if (realpath($_SERVER['SCRIPT_FILENAME'] ?? '') === __FILE__) {
    $signed = sign_request(stream_get_contents(STDIN), getenv('SIGNING_SECRET'));
    echo json_encode($signed, JSON_THROW_ON_ERROR), "\n";
}
