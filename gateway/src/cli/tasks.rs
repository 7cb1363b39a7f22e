//! `gateway tasks`: commands that run in the background, and how they ended.

use clap::{Args, Subcommand};
use fault::Fault;
use proto::v1 as pb;
use serde_json::{Value, json};

use super::Common;
use super::output::{exit_json, print_json, safe, table};
use crate::clock;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct TasksArgs {
    #[command(subcommand)]
    command: Option<TasksCommand>,
    /// Only those that run.
    #[arg(long)]
    running: bool,
    /// Only those of this agent.
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
}

#[derive(Debug, Subcommand)]
enum TasksCommand {
    /// End one: TERM to its whole tree, KILL after a grace.
    Stop(StopArgs),
}

#[derive(Debug, Args)]
struct StopArgs {
    /// Id of the task or its session, or a unique beginning of one.
    task: String,
    /// Only among those of this agent.
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
}

pub(super) async fn run(common: &Common, args: TasksArgs) -> Result<u8, Fault> {
    match args.command {
        Some(TasksCommand::Stop(args)) => stop(common, args).await,
        None => list(common, args.running, args.agent.unwrap_or_default()).await,
    }
}

async fn list(common: &Common, running: bool, agent_id: String) -> Result<u8, Fault> {
    let request = pb::ListTasksRequest { agent_id, running };
    let reply = common.connect().await?.tools().list_tasks(request).await;
    let tasks = reply.map_err(|status| Fault::from_status(&status))?.into_inner().tasks;
    if common.json {
        print_json(&json!({ "tasks": tasks.iter().map(task_json).collect::<Vec<_>>() }));
    } else if tasks.is_empty() {
        say_line!("no background commands");
    } else {
        let now = clock::now_ms();
        let rows: Vec<_> = tasks.iter().map(|task| row(task, now)).collect();
        table(&["SESSION", "STATUS", "TIME", "NODE", "AGENT", "COMMAND", "TASK"], &rows);
    }
    Ok(0)
}

async fn stop(common: &Common, args: StopArgs) -> Result<u8, Fault> {
    let request = pb::StopTaskRequest { task: args.task, agent_id: args.agent.unwrap_or_default() };
    let reply = common.connect().await?.tools().stop_task(request).await;
    let task = reply.map_err(|status| Fault::from_status(&status))?.into_inner().task.unwrap_or_default();
    if common.json {
        print_json(&json!({ "requested": true, "taskId": task.task_id, "sessionId": task.session_id }));
    } else {
        say_line!("termination of {} was requested", safe(&task.session_id));
    }
    Ok(0)
}

fn row(task: &pb::Task, now_ms: i64) -> Vec<String> {
    let took_ms = match &task.exit {
        Some(exit) => exit.duration_ms,
        None => u64::try_from(now_ms - task.started_unix_ms).unwrap_or_default(),
    };
    vec![
        safe(&task.session_id),
        status(task.status()).to_owned(),
        took(took_ms / 1000),
        safe(&task.node_name),
        safe(&task.agent_id),
        safe(&task.label),
        safe(&task.task_id),
    ]
}

/// Seconds as people write them: `59s`, `2m05s`, `3h00m`, `4d01h`.
fn took(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds / 3600 % 24),
    }
}

fn task_json(task: &pb::Task) -> Value {
    json!({
        "taskId": task.task_id,
        "status": status(task.status()),
        "label": task.label,
        "sessionId": task.session_id,
        "nodeId": task.node_id,
        "nodeName": task.node_name,
        "agentId": task.agent_id,
        "sessionKey": task.session_key,
        "cwd": task.workdir,
        "startedAtMs": task.started_unix_ms,
        "endedAtMs": (task.ended_unix_ms > 0).then_some(task.ended_unix_ms),
        "exit": task.exit.as_ref().map(exit_json),
    })
}

fn status(status: pb::task::Status) -> &'static str {
    match status {
        pb::task::Status::Running => "running",
        pb::task::Status::Succeeded => "succeeded",
        pb::task::Status::Failed => "failed",
        pb::task::Status::TimedOut => "timed_out",
        pb::task::Status::Cancelled => "cancelled",
        pb::task::Status::Unspecified => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_one_row_and_one_object() {
        let running = pb::Task {
            task_id: "r".to_owned(),
            label: "make\n".to_owned(),
            status: pb::task::Status::Running.into(),
            node_id: "ab".to_owned(),
            node_name: "box".to_owned(),
            session_id: "calm-reef".to_owned(),
            agent_id: "main".to_owned(),
            started_unix_ms: 1000,
            ..pb::Task::default()
        };
        let want = ["calm-reef", "running", "2m05s", "box", "main", "make\\n", "r"];
        assert_eq!(row(&running, 126_999), want.map(str::to_owned));
        let exit = pb::Exit { duration_ms: 3_600_000, ..pb::Exit::default() };
        let ended = pb::Task {
            status: pb::task::Status::TimedOut.into(),
            ended_unix_ms: 2000,
            exit: Some(exit.clone()),
            ..running.clone()
        };
        assert_eq!(row(&ended, 0)[1..3], ["timed_out", "1h00m"]);
        let want = json!({
            "taskId": "r", "status": "timed_out", "label": "make\n", "sessionId": "calm-reef", "nodeId": "ab",
            "nodeName": "box", "agentId": "main", "sessionKey": "", "cwd": "", "startedAtMs": 1000, "endedAtMs": 2000,
            "exit": exit_json(&exit),
        });
        assert_eq!(task_json(&ended), want);
        assert_eq!(task_json(&running)["endedAtMs"], Value::Null);
        assert_eq!([took(59), took(90_000)], ["59s", "1d01h"]);
    }
}
