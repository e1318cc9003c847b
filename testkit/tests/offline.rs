//! What a test finds where it runs agents.

use std::{
    env, fs,
    io::Read,
    net::{TcpListener, TcpStream},
    panic,
};

use cuegate_testkit::offline;

#[test]
fn inside_there_is_a_loopback_and_nothing_else() {
    if !offline::inside() {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut here = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    drop(listener.accept().unwrap());
    assert_eq!(here.read(&mut [0]).unwrap(), 0);
    // An address of the block for documentation: nobody is there, and nothing leads there.
    let elsewhere = TcpStream::connect("192.0.2.1:80").unwrap_err();
    assert_eq!(elsewhere.kind(), std::io::ErrorKind::NetworkUnreachable);
}

#[test]
fn inside_nobody_is_at_home() {
    if !offline::inside() {
        return;
    }
    let home = env::var("HOME").unwrap();
    assert_eq!(fs::read_dir(&home).unwrap().count(), 0);
    assert_eq!(env::temp_dir().parent(), std::path::Path::new(&home).parent());
    let names = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "https_proxy", "SSH_AUTH_SOCK", "XDG_CONFIG_HOME"];
    let known: Vec<&str> = names.into_iter().filter(|name| env::var_os(name).is_some()).collect();
    assert!(known.is_empty(), "{known:?}");
}

#[test]
fn a_failure_inside_is_one_outside() {
    match panic::catch_unwind(offline::inside) {
        Ok(true) => panic!("on purpose"),
        Ok(false) => panic!("the failure got lost"),
        Err(told) => {
            let told = told.downcast::<String>().unwrap();
            assert_eq!(*told, "`a_failure_inside_is_one_outside` failed in its namespace");
        }
    }
}
