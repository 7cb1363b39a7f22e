//! The wire is a promise: what it looks like is committed, so that a change of
//! it is a reviewed diff.
//!
//! `UPDATE_WIRE=1 cargo test -p proto` writes the file anew.

#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::path::Path;

use prost::Message as _;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorSet};

#[test]
fn the_wire_is_the_committed_one() {
    let set = FileDescriptorSet::decode(proto::DESCRIPTORS).unwrap();
    let found = render(&set);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("relay/v1/wire.txt");
    if std::env::var_os("UPDATE_WIRE").is_some() {
        std::fs::write(&path, &found).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    for (line, (ours, theirs)) in found.lines().zip(committed.lines()).enumerate() {
        assert_eq!(ours, theirs, "line {} of wire.txt; UPDATE_WIRE=1 writes it anew", line + 1);
    }
    assert_eq!(found.lines().count(), committed.lines().count(), "UPDATE_WIRE=1 writes wire.txt anew");
}

#[test]
fn zero_of_every_enum_is_unspecified() {
    fn check(scope: &str, enums: &[EnumDescriptorProto]) {
        for e in enums {
            let zero =
                e.value.iter().find(|v| v.number() == 0).map(|v| v.name().to_owned()).unwrap_or_default();
            assert!(zero.ends_with("_UNSPECIFIED"), "{scope}.{}: {zero}", e.name());
        }
    }
    let set = FileDescriptorSet::decode(proto::DESCRIPTORS).unwrap();
    for file in &set.file {
        check(file.package(), &file.enum_type);
        for message in &file.message_type {
            check(message.name(), &message.enum_type);
        }
    }
}

fn render(set: &FileDescriptorSet) -> String {
    let mut out = String::from("# The wire, field by field. Made by `UPDATE_WIRE=1 cargo test -p proto`.\n");
    for file in &set.file {
        writeln!(out, "\nfile {} package {}", file.name(), file.package()).unwrap();
        for e in &file.enum_type {
            render_enum(&mut out, "", e);
        }
        for message in &file.message_type {
            render_message(&mut out, "", message);
        }
        for service in &file.service {
            for method in &service.method {
                let stream = |yes: bool| if yes { "stream " } else { "" };
                writeln!(
                    out,
                    "rpc {}.{} ({}{}) -> {}{}",
                    service.name(),
                    method.name(),
                    stream(method.client_streaming()),
                    short(method.input_type()),
                    stream(method.server_streaming()),
                    short(method.output_type()),
                )
                .unwrap();
            }
        }
    }
    out
}

fn render_message(out: &mut String, scope: &str, message: &DescriptorProto) {
    let name = format!("{scope}{}", message.name());
    if message.options.as_ref().is_some_and(|o| o.map_entry()) {
        let kinds: Vec<_> = message.field.iter().map(kind).collect();
        writeln!(out, "map {name} {}", kinds.join(" -> ")).unwrap();
        return;
    }
    writeln!(out, "message {name}").unwrap();
    for field in &message.field {
        let repeated = if field.label() == Label::Repeated { "repeated " } else { "" };
        let oneof = field
            .oneof_index
            .and_then(|i| message.oneof_decl.get(usize::try_from(i).unwrap()))
            .map(|o| format!(" oneof {}", o.name()))
            .unwrap_or_default();
        writeln!(out, "  {} {repeated}{} {}{oneof}", field.number(), kind(field), field.name()).unwrap();
    }
    for e in &message.enum_type {
        render_enum(out, &format!("{name}."), e);
    }
    for nested in &message.nested_type {
        render_message(out, &format!("{name}."), nested);
    }
}

fn render_enum(out: &mut String, scope: &str, e: &EnumDescriptorProto) {
    writeln!(out, "enum {scope}{}", e.name()).unwrap();
    for value in &e.value {
        writeln!(out, "  {} {}", value.number(), value.name()).unwrap();
    }
}

fn kind(field: &FieldDescriptorProto) -> String {
    match field.r#type() {
        Type::Message | Type::Enum => short(field.type_name()).to_owned(),
        other => format!("{other:?}").to_lowercase(),
    }
}

fn short(name: &str) -> &str {
    name.strip_prefix(".relay.v1.").unwrap_or(name)
}
