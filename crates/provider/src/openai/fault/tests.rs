use super::*;

fn service(base: &str, is_local: bool) -> ServiceContext {
    ServiceContext { base: base.to_owned(), is_local, key_env: Some("KEY".to_owned()), model: "m".to_owned() }
}

fn of(what: TroubleKind, said: &str) -> Fault {
    fault_of_trouble(&RequestTrouble::new(what, said), &service("https://api.example/v1", false))
}

fn told(what: TroubleKind, said: &str) -> String {
    let fault = of(what, said);
    format!("{:?}: {fault}", fault.class)
}

#[test]
fn each_status_has_its_class() {
    let class = |status| of(TroubleKind::Status(status), "").class;
    for (class_of, statuses) in [
        (FaultClass::Auth, &[401, 402, 403, 407][..]),
        (FaultClass::MissingProgram, &[301, 304, 308, 404, 405]),
        (FaultClass::ContextOverflow, &[413]),
        (FaultClass::RateLimited, &[429]),
        (FaultClass::Overloaded, &[408, 409, 425, 500, 502, 503, 504, 520, 529]),
        (FaultClass::Refused, &[400, 406, 415, 418, 422, 501, 505]),
    ] {
        for status in statuses {
            assert_eq!(class(*status), class_of, "{status}");
        }
    }
}

#[test]
fn messages_are_more_specific_than_statuses() {
    // Real errors of hosted services, llama.cpp, ollama, vLLM and gateways.
    let cases = [
        (
            400,
            r#"{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
        ),
        (
            400,
            r#"{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9001,"n_ctx":4096}}"#,
        ),
        (
            400,
            r#"{"object":"error","message":"This model's maximum context length is 2048 tokens.","type":"BadRequestError","param":null,"code":400}"#,
        ),
        (
            429,
            r#"{"error":{"message":"Rate limit reached for m on tokens per min (TPM): Limit 30000. Request too large, reduce the context length.","type":"tokens","code":"rate_limit_exceeded"}}"#,
        ),
        (
            429,
            r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#,
        ),
        (
            429,
            r#"[{"error":{"code":429,"message":"You exceeded your current quota, please check your plan. Please retry in 36s.","status":"RESOURCE_EXHAUSTED"}}]"#,
        ),
        (
            402,
            r#"{"error":{"message":"Insufficient Balance","type":"unknown_error","code":"invalid_request_error"}}"#,
        ),
        (
            404,
            r#"{"error":{"message":"The model `m` does not exist or you do not have access to it.","type":"invalid_request_error","code":"model_not_found"}}"#,
        ),
        (
            404,
            r#"{"error":{"message":"model \"m\" not found, try pulling it first","type":"api_error","param":null,"code":null}}"#,
        ),
        (404, r#"{"error":"model 'm' not found"}"#),
        (400, r#"{"error":{"message":"m is not a valid model ID","code":400}}"#),
        (404, r#"{"detail":"Not Found"}"#),
        (
            400,
            r#"{"error":{"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","code":400}}"#,
        ),
        (
            400,
            r#"{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","type":"invalid_request_error","code":"unsupported_parameter"}}"#,
        ),
        (
            400,
            r#"{"error":{"message":"Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.","type":"invalid_request_error","code":null}}"#,
        ),
        (
            400,
            r#"{"error":{"message":"The response was filtered due to the prompt triggering our content management policy.","code":"content_filter","status":400}}"#,
        ),
        (
            403,
            r#"{"error":{"message":"Your input was flagged","code":403,"metadata":{"reasons":["violence"]}}}"#,
        ),
        (500, r#"{"error":{"message":"input is too long for the context window","type":"server_error"}}"#),
        (
            500,
            r#"{"error":{"message":"The server had an error while processing your request. Sorry about that!","type":"server_error"}}"#,
        ),
        (422, r#"{"detail":[{"loc":["body","messages"],"msg":"field required"}]}"#),
    ];
    let told: String =
        cases.iter().map(|(status, body)| told(TroubleKind::Status(*status), body) + "\n").collect();
    insta::assert_snapshot!(told, @r#"
    ContextOverflow: https://api.example/v1 answered 400: This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.
    ContextOverflow: https://api.example/v1 answered 400: the request exceeds the available context size, try increasing it
    ContextOverflow: https://api.example/v1 answered 400: This model's maximum context length is 2048 tokens.
    RateLimited: https://api.example/v1 answered 429: Rate limit reached for m on tokens per min (TPM): Limit 30000. Request too large, reduce the context length.
    Auth: https://api.example/v1 answered 429: You exceeded your current quota, please check your plan and billing details. (the account needs payment)
    RateLimited: https://api.example/v1 answered 429: You exceeded your current quota, please check your plan. Please retry in 36s.
    Auth: https://api.example/v1 answered 402: Insufficient Balance (the account needs payment)
    UnknownModel: https://api.example/v1 answered 404: The model `m` does not exist or you do not have access to it. (the requested model is `m`)
    UnknownModel: https://api.example/v1 answered 404: model "m" not found, try pulling it first (the requested model is `m`)
    UnknownModel: https://api.example/v1 answered 404: model 'm' not found (the requested model is `m`)
    UnknownModel: https://api.example/v1 answered 400: m is not a valid model ID (the requested model is `m`)
    MissingProgram: https://api.example/v1 answered 404: Not Found (correct `base_url`, which usually ends with `/v1`)
    Auth: https://api.example/v1 answered 400: API key not valid. Please pass a valid API key. (check the key in `KEY`)
    Refused: https://api.example/v1 answered 400: Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead. (set `token_field` to the other name)
    Refused: https://api.example/v1 answered 400: Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model. (if the service does not support schemas, set `schema = "json_object"` or `"none"`)
    Refused: https://api.example/v1 answered 400: The response was filtered due to the prompt triggering our content management policy.
    Refused: https://api.example/v1 answered 403: Your input was flagged
    ContextOverflow: https://api.example/v1 answered 500: input is too long for the context window
    Overloaded: https://api.example/v1 answered 500: The server had an error while processing your request. Sorry about that!
    Refused: https://api.example/v1 answered 422: {"detail":[{"loc":["body","messages"],"msg":"field required"}]}
    "#);
}

#[test]
fn errors_inside_an_answer_are_classified_by_their_text() {
    let cases = [
        r#"{"error":{"message":"Upstream is busy","code":502}}"#,
        r#"{"error":{"message":"Too many","code":"429"}}"#,
        r#"{"error":{"message":"Rate limit","type":"rate_limit_exceeded"}}"#,
        r#"{"error":{"message":"The server is overloaded","type":"overloaded_error"}}"#,
        r#"{"error":{"message":"Bad key","code":"invalid_api_key"}}"#,
        r#"{"error":{"message":"the context window is full","type":"x"}}"#,
        r#"{"error":{"message":"no such thing","type":"invalid_request_error"}}"#,
        r#"{"error":"model 'm' not found"}"#,
        r#"{"error":{"message":"boom"}}"#,
        r#"{"error":{}}"#,
        "no json at all",
    ];
    let told: String = cases.iter().map(|body| told(TroubleKind::Reported, body) + "\n").collect();
    insta::assert_snapshot!(told, @r#"
    Overloaded: https://api.example/v1 answered 502: Upstream is busy
    RateLimited: https://api.example/v1 answered 429: Too many
    RateLimited: https://api.example/v1 answered: Rate limit
    Overloaded: https://api.example/v1 answered: The server is overloaded
    Auth: https://api.example/v1 answered: Bad key (check the key in `KEY`)
    ContextOverflow: https://api.example/v1 answered: the context window is full
    Refused: https://api.example/v1 answered: no such thing
    UnknownModel: https://api.example/v1 answered: model 'm' not found (the requested model is `m`)
    Crashed: https://api.example/v1 answered: boom
    Crashed: https://api.example/v1 answered: {"error":{}}
    Crashed: https://api.example/v1 answered: no json at all
    "#);
}

#[test]
fn transport_problems_are_reported() {
    let all = [
        TroubleKind::NoKey,
        TroubleKind::ConnectionRefused,
        TroubleKind::Unreachable,
        TroubleKind::Tls,
        TroubleKind::Proxy,
        TroubleKind::Silent,
        TroubleKind::BrokeOff,
        TroubleKind::Garbled,
        TroubleKind::Unsendable,
    ];
    let mut text: String = all.iter().map(|what| told(*what, "WHY") + "\n").collect();
    let local = service("http://localhost:8080/v1", true);
    for what in [TroubleKind::ConnectionRefused, TroubleKind::Unreachable] {
        let fault = fault_of_trouble(&RequestTrouble::new(what, "WHY"), &local);
        text += &format!("{:?}: {fault}\n", fault.class);
    }
    insta::assert_snapshot!(text, @"
    Auth: the environment variable `WHY` is not set (set `WHY` to the key of the service, or change `key_env`)
    Network: https://api.example/v1 is unreachable: WHY (check the network and `base_url`)
    Network: https://api.example/v1 is unreachable: WHY (check the network and `base_url`)
    MissingProgram: TLS connection to https://api.example/v1 failed: WHY (start `base_url` with `http://` if the service has no TLS; set `SSL_CERT_FILE` to trust more certificates)
    Network: the proxy cannot connect to https://api.example/v1: WHY (check `ALL_PROXY`, `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`)
    Timeout: https://api.example/v1 timed out: WHY
    Crashed: the answer of https://api.example/v1 was interrupted: WHY
    Malformed: https://api.example/v1 sent an invalid response: WHY
    MissingProgram: the request to https://api.example/v1 is invalid: WHY (correct the settings, or the key in `KEY`)
    MissingProgram: no server is running at http://localhost:8080/v1: WHY (start the server, or correct `base_url`)
    MissingProgram: no server is running at http://localhost:8080/v1: WHY (start the server, or correct `base_url`)
    ");
}

#[test]
fn only_temporary_faults_have_a_reset_time() {
    let at = |status| RequestTrouble {
        what: TroubleKind::Status(status),
        said: String::new(),
        resets_in_ms: Some(5),
    };
    let resets = |status| fault_of_trouble(&at(status), &service("x", false)).resets_in_ms;
    assert_eq!([429, 503, 401, 402].map(resets), [Some(5), Some(5), None, None]);
}

#[test]
fn messages_are_truncated_and_have_no_control_characters() {
    assert_eq!(shorten_text(" a\u{1b}[31mb\r\nc\u{9b}d "), "a [31mb  c d");
    assert_eq!(shorten_text(&"é".repeat(SAID_MAX)), "é".repeat(SAID_MAX));
    assert_eq!(shorten_text(&"é".repeat(SAID_MAX + 1)), "é".repeat(SAID_MAX) + "…");
}
