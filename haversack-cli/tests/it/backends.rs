use insta::assert_snapshot;

use crate::environment::TestEnv;

#[test]
fn the_table_of_capabilities() {
    let env = TestEnv::new();
    assert_snapshot!(env.run(&["backends"]), @r#"
    exit 0
    --- stdout
                        anthropic  azure  device-local  file  gcs  memory  s3   vault
    concurrent-writers  yes        yes    yes           yes   yes  yes     yes  yes
    conflict-files      -          -      -             -     -    -       -    yes
    encryption          -          -      -             -     -    -       -    -
    sync                -          -      -             -     -    -       -    yes
    create-if-absent    yes        yes    yes           yes   yes  yes     yes  -
    update-if-match     yes        yes    yes           yes   yes  yes     yes  yes
    conditional-delete  yes        yes    yes           yes   yes  yes     yes  yes
    flat-append         -          -      yes           yes   -    -       -    -
    empty-directories   -          -      yes           yes   -    yes     -    yes
    tree                -          -      yes           yes   -    yes     -    yes
    atomic-rename       -          -      yes           yes   -    yes     -    yes
    exchange            -          -      yes           yes   -    yes     -    yes
    durable             yes        yes    yes           yes   yes  -       yes  yes
    refuses-case-twins  -          -      yes           yes   -    yes     -    yes
    --- stderr
    "#);
    assert_eq!(std::fs::read_dir(env.path("")).expect("listed").count(), 0, "looking creates nothing");
}

#[test]
fn json_for_scripts() {
    let output = TestEnv::new().command(&["backends", "--json"]).output().expect("it ran");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("valid JSON");
    assert_eq!(json["registered"]["device-local"]["capabilities"]["durable"], true);
    assert_eq!(json["registered"]["memory"]["capabilities"]["durable"], false);
    assert_eq!(json["registered"]["vault"]["capabilities"]["create-if-absent"], false);
}

#[test]
fn an_unknown_command_is_a_usage_error() {
    assert_snapshot!(TestEnv::new().run(&["xyzzy"]), @r#"
    exit 2
    --- stdout
    --- stderr
    error: unrecognized subcommand 'xyzzy'

      tip: see all commands: haversack help --all

    Usage: haversack [OPTIONS] <COMMAND>

    For more information, try '--help'.
    "#);
}
