//! What a function may return instead, by its return type, and what an operator is exchanged for:
//! the choices of cargo-mutants 27.

use quote::ToTokens;
use syn::{BinOp, GenericArgument, Path, PathArguments, ReturnType, Type, TypeParamBound};

/// Expressions to return instead of running the body.
pub fn of_return_type(output: &ReturnType) -> Vec<String> {
    match output {
        ReturnType::Default => vec!["()".to_owned()],
        ReturnType::Type(_, result) => of_type(result),
    }
}

/// Expressions of type `result`.
fn of_type(result: &Type) -> Vec<String> {
    let each = |element: &Type, form: &dyn Fn(String) -> String| -> Vec<String> {
        of_type(element).into_iter().map(form).collect()
    };
    match result {
        Type::Path(path) => of_path(&path.path),
        Type::Array(array) => {
            let length = array.len.to_token_stream();
            each(&array.elem, &|value| format!("[{value}; {length}]"))
        }
        Type::Slice(slice) => of_slice(&slice.elem),
        Type::Reference(reference) => match &*reference.elem {
            Type::Path(path) if path.path.is_ident("str") && reference.mutability.is_none() => {
                of_path(&path.path)
            }
            Type::Slice(slice) => of_slice(&slice.elem),
            element => each(element, &|value| format!("Box::leak(Box::new({value}))")),
        },
        Type::Tuple(tuple) => tuple
            .elems
            .iter()
            .map(of_type)
            .fold(vec![String::new()], |rows, values| {
                let extend = |row: &String| {
                    let separator = if row.is_empty() { "" } else { ", " };
                    let row = format!("{row}{separator}");
                    values
                        .iter()
                        .map(move |value| format!("{row}{value}"))
                        .collect::<Vec<_>>()
                };
                rows.iter().flat_map(extend).collect()
            })
            .into_iter()
            .map(|row| format!("({row})"))
            .collect(),
        Type::ImplTrait(bounds) => match bounds.bounds.iter().find_map(iterated) {
            Some(item) => std::iter::once("::std::iter::empty()".to_owned())
                .chain(each(item, &|value| format!("::std::iter::once({value})")))
                .collect(),
            None => Vec::new(),
        },
        Type::Never(_) => Vec::new(),
        _ => vec!["Default::default()".to_owned()],
    }
}

fn of_slice(element: &Type) -> Vec<String> {
    let one = of_type(element).into_iter();
    std::iter::once("Vec::leak(Vec::new())".to_owned())
        .chain(one.map(|value| format!("Vec::leak(vec![{value}])")))
        .collect()
}

fn of_path(path: &Path) -> Vec<String> {
    let owned = |values: &[&str]| values.iter().map(|&value| value.to_owned()).collect();
    if let Some(name) = path.get_ident().map(ToString::to_string) {
        match name.as_str() {
            "bool" => return owned(&["true", "false"]),
            "String" => return owned(&["String::new()", "\"xyzzy\".into()"]),
            "str" => return owned(&["\"\"", "\"xyzzy\""]),
            "u8" | "u16" | "u32" | "u64" | "u128" | "usize" => return owned(&["0", "1"]),
            "i8" | "i16" | "i32" | "i64" | "i128" | "isize" => return owned(&["0", "1", "-1"]),
            _ => {}
        }
    }
    let Some(last) = path.segments.last() else {
        return owned(&["Default::default()"]);
    };
    let name = last.ident.to_string();
    let arguments = type_arguments(&last.arguments);
    match (name.as_str(), arguments.as_slice()) {
        ("Result", []) => owned(&["Ok(Default::default())"]),
        ("Result", [ok, ..]) => wrapped(ok, "Ok"),
        ("Option", [some, ..]) => std::iter::once("None".to_owned())
            .chain(wrapped(some, "Some"))
            .collect(),
        ("NonZeroU8" | "NonZeroU16" | "NonZeroU32" | "NonZeroU64" | "NonZeroUsize", []) => {
            owned(&["1.try_into().unwrap()"])
        }
        ("Box" | "Cell" | "RefCell" | "Arc" | "Rc" | "Mutex", [inner]) => {
            wrapped(inner, &format!("{name}::new"))
        }
        // Something like `T<A>`: perhaps it can be made from an `A`.
        (_, [inner]) => std::iter::once(format!("{name}::new()"))
            .chain(of_type(inner).into_iter().flat_map(|value| {
                [
                    format!("{name}::from_iter([{value}])"),
                    format!("{name}::new({value})"),
                    format!("{name}::from({value})"),
                ]
            }))
            .collect(),
        _ => owned(&["Default::default()"]),
    }
}

fn wrapped(inner: &Type, constructor: &str) -> Vec<String> {
    of_type(inner)
        .into_iter()
        .map(|value| format!("{constructor}({value})"))
        .collect()
}

fn type_arguments(arguments: &PathArguments) -> Vec<&Type> {
    let PathArguments::AngleBracketed(arguments) = arguments else {
        return Vec::new();
    };
    arguments
        .args
        .iter()
        .filter_map(|argument| match argument {
            GenericArgument::Type(argument) => Some(argument),
            _ => None,
        })
        .collect()
}

/// The items of `impl Iterator<Item = ...>`.
fn iterated(bound: &TypeParamBound) -> Option<&Type> {
    let TypeParamBound::Trait(bound) = bound else {
        return None;
    };
    let last = bound.path.segments.last()?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else {
        return None;
    };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::AssocType(item) if last.ident == "Iterator" && item.ident == "Item" => {
            Some(&item.ty)
        }
        _ => None,
    })
}

/// What an operator is exchanged for.
pub fn of_operator(operator: &BinOp) -> &'static [&'static str] {
    match operator {
        BinOp::Eq(_) => &["!="],
        BinOp::Ne(_) => &["=="],
        BinOp::And(_) => &["||"],
        BinOp::Or(_) => &["&&"],
        BinOp::Lt(_) => &["==", ">", "<="],
        BinOp::Gt(_) => &["==", "<", ">="],
        BinOp::Le(_) => &[">"],
        BinOp::Ge(_) => &["<"],
        BinOp::Add(_) => &["-", "*"],
        BinOp::AddAssign(_) => &["-=", "*="],
        BinOp::Sub(_) | BinOp::Mul(_) => &["+", "/"],
        BinOp::SubAssign(_) | BinOp::MulAssign(_) => &["+=", "/="],
        BinOp::Div(_) => &["%", "*"],
        BinOp::DivAssign(_) => &["%=", "*="],
        BinOp::Rem(_) => &["/", "+"],
        BinOp::RemAssign(_) => &["/=", "+="],
        BinOp::Shl(_) => &[">>"],
        BinOp::ShlAssign(_) => &[">>="],
        BinOp::Shr(_) => &["<<"],
        BinOp::ShrAssign(_) => &["<<="],
        BinOp::BitAnd(_) => &["|", "^"],
        BinOp::BitAndAssign(_) => &["|="],
        BinOp::BitOr(_) => &["&", "^"],
        BinOp::BitOrAssign(_) => &["&="],
        BinOp::BitXor(_) => &["|", "&"],
        BinOp::BitXorAssign(_) => &["|=", "&="],
        _ => &[],
    }
}
